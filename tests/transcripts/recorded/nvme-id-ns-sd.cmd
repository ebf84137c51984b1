nvme id-ns /dev/sda
