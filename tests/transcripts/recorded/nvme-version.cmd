nvme version
