smartctl -l defects /dev/sdc
