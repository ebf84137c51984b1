smartctl -l selftest /dev/sda
