sg_ses --get=devoff /dev/sg0
