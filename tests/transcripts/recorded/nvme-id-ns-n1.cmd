nvme id-ns /dev/nvme0 -n 1
