smartctl -d frob -H /dev/sdb
