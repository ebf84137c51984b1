smartctl -l error /dev/sda
