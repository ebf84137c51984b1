nvme smart-log nvme0 -o json
