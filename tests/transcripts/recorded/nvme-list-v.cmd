nvme list -v
