smartctl -l selftest /dev/sdc
