smartctl -A /dev/sda
