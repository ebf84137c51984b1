smartctl -a /dev/nvme0n1
