smartctl -l scttemp /dev/sdc
