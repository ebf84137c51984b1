smartctl -j --scan
