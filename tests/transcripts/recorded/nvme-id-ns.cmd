nvme id-ns /dev/nvme0n1
