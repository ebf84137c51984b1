sg_ses --page=es --dev-slot-num=2 --get=devoff /dev/sg0
