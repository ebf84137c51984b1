nvme error-log /dev/nvme0n1 -e 4 -o json
