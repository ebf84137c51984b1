smartctl -l defects /dev/sda
