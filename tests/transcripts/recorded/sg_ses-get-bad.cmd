sg_ses -I 6 --get=9:9 /dev/sg0
