smartctl -a
