nvme id-ns --help
