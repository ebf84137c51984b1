nvme list-subsys /dev/nvme0
