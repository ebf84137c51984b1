smartctl -l sataphy /dev/nvme0
