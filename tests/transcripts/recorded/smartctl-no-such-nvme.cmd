smartctl -a /dev/nvme9
