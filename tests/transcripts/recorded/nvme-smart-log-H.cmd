nvme smart-log -H /dev/nvme0
