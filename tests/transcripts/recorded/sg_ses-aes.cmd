sg_ses --page=aes /dev/sg0
