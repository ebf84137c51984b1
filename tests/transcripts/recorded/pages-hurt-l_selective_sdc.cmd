smartctl -l selective /dev/sdc
