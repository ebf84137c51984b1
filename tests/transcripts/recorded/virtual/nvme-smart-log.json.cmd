nvme smart-log /dev/nvme0n1 -o json
