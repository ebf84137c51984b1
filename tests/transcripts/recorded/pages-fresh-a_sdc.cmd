smartctl -a /dev/sdc
