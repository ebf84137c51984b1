lsblk /dev/sdz
