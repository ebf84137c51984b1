smartctl -l sasphy /dev/sdc
