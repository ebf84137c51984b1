sg_ses --index=6 --get=devoff /dev/sg0
