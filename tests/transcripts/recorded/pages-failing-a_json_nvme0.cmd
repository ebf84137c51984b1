smartctl -a -j /dev/nvme0
