smartctl -l xerror /dev/sda
