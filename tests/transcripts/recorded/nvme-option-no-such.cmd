nvme smart-log /dev/nvme0 --frobnicate
