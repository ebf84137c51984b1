find /sys/block/sda/queue/ -maxdepth 1 -type f -printf '%f\n' | sort
