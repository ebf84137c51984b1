smartctl -l devstat /dev/sdb
