sg_ses /dev/sda
