smartctl -l ssd /dev/sdd
