nvme list-subsys /dev/nvme0n1
