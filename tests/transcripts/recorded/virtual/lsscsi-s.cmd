lsscsi -s
