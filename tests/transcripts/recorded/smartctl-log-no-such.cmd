smartctl -l frobnicate /dev/sda
