sg_ses --page=es -x 1 --get=zap /dev/sg0
