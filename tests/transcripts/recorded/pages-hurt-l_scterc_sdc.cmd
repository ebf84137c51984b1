smartctl -l scterc /dev/sdc
