smartctl -a /dev/nvme0
