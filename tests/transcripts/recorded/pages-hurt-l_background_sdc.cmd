smartctl -l background /dev/sdc
