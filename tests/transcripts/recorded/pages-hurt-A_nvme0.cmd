smartctl -A /dev/nvme0
