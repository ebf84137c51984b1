nvme reset /dev/nvme0n1
