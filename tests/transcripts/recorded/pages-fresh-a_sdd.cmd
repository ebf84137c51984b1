smartctl -a /dev/sdd
