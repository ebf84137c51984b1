smartctl -l devstat /dev/sda
