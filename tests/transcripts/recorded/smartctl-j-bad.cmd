smartctl --json=z -H /dev/sdb
