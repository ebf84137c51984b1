smartctl -l background /dev/sda
