smartctl -c /dev/nvme0
