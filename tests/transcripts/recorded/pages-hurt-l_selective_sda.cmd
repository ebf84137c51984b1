smartctl -l selective /dev/sda
