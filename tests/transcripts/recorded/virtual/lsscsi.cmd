lsscsi
