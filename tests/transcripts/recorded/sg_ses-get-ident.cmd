sg_ses -I 6 --get=ident /dev/sg0
