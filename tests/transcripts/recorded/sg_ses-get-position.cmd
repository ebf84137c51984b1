sg_ses --page=es -x 6 --get=3:4 /dev/sg0
