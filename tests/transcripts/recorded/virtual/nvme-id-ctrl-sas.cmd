nvme id-ctrl /dev/sda
