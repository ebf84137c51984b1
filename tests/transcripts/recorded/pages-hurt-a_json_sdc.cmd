smartctl -a -j /dev/sdc
