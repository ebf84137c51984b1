smartctl -l xselftest /dev/sda
