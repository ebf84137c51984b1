smartctl -x /dev/nvme0
