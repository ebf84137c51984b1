nvme frobnicate /dev/nvme0
