smartctl -a -j
