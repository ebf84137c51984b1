smartctl -i /dev/nvme0
