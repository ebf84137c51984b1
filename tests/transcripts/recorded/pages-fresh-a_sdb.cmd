smartctl -a /dev/sdb
