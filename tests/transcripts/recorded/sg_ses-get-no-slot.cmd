sg_ses --dev-slot-num=20 --get=devoff /dev/sg0
