smartctl -l scterc /dev/sda
