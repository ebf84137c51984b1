lsblk -J -O -b
