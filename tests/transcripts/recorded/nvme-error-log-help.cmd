nvme error-log --help
