smartctl -x -j /dev/nvme0
