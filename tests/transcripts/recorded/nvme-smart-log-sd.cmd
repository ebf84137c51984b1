nvme smart-log /dev/sda
