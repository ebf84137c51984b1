smartctl -j -x /dev/nvme0n1
