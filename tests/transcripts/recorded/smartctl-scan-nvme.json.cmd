smartctl --scan -d nvme -j
