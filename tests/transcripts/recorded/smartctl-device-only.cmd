smartctl /dev/sda
