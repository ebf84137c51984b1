nvme list-subsys --help
