nvme subsystem-reset /dev/sda
