smartctl -l scttemp /dev/sda
