sg_ses --page=ed /dev/sg0
