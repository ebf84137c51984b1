udevadm info --query=property /dev/nvme0n1
