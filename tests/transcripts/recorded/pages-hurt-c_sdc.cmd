smartctl -c /dev/sdc
