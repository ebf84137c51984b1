smartctl -l xselftest /dev/sdc
