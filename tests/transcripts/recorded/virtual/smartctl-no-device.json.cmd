smartctl -j -x /dev/sdz
