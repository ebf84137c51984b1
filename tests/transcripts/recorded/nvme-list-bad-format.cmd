nvme list -o xml
