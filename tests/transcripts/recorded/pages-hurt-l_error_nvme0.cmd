smartctl -l error /dev/nvme0
