nvme list-subsys /dev/nvme9n1 -o json
