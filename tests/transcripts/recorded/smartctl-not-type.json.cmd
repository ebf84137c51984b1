smartctl -j -a /dev/loop77
