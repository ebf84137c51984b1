nvme subsystem-reset /dev/nvme0
