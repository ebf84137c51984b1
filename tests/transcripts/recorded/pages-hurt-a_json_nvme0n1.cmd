smartctl -a -j /dev/nvme0n1
