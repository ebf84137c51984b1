nvme smart-log -H /dev/nvme0 -o json
