nvme reset /dev/nvme0 -o json
