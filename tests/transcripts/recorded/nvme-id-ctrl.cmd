nvme id-ctrl /dev/nvme0
