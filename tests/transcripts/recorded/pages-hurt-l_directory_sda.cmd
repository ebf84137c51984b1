smartctl -l directory /dev/sda
