smartctl -jiHA /dev/nvme0
