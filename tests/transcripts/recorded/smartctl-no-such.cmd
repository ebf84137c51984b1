smartctl -a /dev/sdz
