smartctl -a /dev/loop77
