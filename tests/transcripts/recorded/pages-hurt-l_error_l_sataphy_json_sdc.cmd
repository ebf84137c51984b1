smartctl -l error -l sataphy -j /dev/sdc
