nvme smart-log -H -o json /dev/nvme0
