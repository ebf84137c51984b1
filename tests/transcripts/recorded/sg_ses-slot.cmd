sg_ses --join --dev-slot-num=2 /dev/sg0
