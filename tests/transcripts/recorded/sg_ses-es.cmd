sg_ses --page=es /dev/sg0
