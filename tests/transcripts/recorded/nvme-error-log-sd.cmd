nvme error-log /dev/sda
