nvme id-ns /dev/nvme0
