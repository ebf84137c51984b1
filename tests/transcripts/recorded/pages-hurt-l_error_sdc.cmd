smartctl -l error /dev/sdc
