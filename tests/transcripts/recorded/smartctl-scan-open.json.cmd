smartctl --scan-open -j
