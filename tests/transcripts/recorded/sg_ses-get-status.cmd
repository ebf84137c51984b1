sg_ses --index=6 --get=0:3:4 /dev/sg0
