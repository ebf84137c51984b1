smartctl -l xerror /dev/sdc
