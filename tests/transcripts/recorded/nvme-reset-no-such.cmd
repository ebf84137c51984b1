nvme reset /dev/nvme9
