hdparm -I /dev/sdb
