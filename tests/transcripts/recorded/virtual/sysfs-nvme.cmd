find /sys/class/nvme/nvme0/ -maxdepth 1 -type f -printf '%f\n' | sort
