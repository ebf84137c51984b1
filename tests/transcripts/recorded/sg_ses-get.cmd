sg_ses -p es --dev-slot-num=6 --get=devoff /dev/sg0
