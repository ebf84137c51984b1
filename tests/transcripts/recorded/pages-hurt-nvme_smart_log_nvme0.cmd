nvme smart-log /dev/nvme0
