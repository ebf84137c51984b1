nvme reset --help
