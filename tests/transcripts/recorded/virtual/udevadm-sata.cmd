udevadm info --query=property /dev/sdb
