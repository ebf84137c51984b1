sg_ses --page=cf /dev/sg0
