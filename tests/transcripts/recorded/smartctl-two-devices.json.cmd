smartctl -j -a /dev/sda /dev/sdb
