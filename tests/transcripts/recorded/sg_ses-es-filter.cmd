sg_ses -p 2 -f /dev/sg0
