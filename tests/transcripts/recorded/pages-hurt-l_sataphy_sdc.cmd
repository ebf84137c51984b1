smartctl -l sataphy /dev/sdc
