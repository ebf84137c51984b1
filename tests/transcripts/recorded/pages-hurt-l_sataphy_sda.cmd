smartctl -l sataphy /dev/sda
