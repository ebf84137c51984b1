smartctl -i /dev/sdc
