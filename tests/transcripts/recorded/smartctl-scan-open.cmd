smartctl --scan-open
