nvme list-subsys
