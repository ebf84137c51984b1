smartctl -l directory /dev/sdc
