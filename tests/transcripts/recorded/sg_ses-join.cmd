sg_ses --join /dev/sg0
