smartctl -H /dev/nvme0
