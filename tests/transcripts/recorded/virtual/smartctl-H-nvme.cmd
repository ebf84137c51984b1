smartctl -H /dev/nvme0n1
