smartctl -d nvme -H /dev/nvme0
