smartctl -a /dev/sda /dev/sdb
