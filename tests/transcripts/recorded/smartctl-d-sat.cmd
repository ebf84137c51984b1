smartctl -d sat -H /dev/sdb
