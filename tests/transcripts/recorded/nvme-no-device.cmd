nvme smart-log
