nvme smart-log /dev/nvme0 -n 9
