nvme error-log /dev/nvme0 -e frob
