smartctl --scan
