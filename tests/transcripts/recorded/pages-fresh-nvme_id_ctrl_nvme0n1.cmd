nvme id-ctrl /dev/nvme0n1
