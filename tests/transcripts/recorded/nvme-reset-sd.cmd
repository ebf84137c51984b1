nvme reset /dev/sda
