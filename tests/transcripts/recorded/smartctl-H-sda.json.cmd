smartctl -j -H /dev/sda
