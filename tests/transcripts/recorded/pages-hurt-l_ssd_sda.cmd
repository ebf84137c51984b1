smartctl -l ssd /dev/sda
