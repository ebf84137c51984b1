udevadm info --query=property /dev/sda
