smartctl -l error -j /dev/nvme0
