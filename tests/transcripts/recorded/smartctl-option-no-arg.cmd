smartctl -l
