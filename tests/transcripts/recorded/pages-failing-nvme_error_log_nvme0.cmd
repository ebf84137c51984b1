nvme error-log /dev/nvme0
