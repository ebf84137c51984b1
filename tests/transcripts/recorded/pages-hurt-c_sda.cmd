smartctl -c /dev/sda
