nvme id-ctrl /dev/nvme0n1 -o json
