smartctl -l devstat /dev/sdc
