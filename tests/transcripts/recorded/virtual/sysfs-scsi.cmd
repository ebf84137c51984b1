find /sys/block/sda/device/ -maxdepth 1 -type f -printf '%f\n' | sort
