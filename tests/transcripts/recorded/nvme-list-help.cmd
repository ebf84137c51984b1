nvme list --help
