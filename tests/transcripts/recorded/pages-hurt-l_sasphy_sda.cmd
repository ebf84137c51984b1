smartctl -l sasphy /dev/sda
