nvme smart-log --help
