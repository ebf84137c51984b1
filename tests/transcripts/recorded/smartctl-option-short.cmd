smartctl -Z /dev/sda
