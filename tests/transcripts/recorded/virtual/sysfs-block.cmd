find /sys/block/sda/ -maxdepth 1 -type f -printf '%f\n' | sort
