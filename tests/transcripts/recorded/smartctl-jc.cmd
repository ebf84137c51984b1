smartctl --json=c -H /dev/sdb
