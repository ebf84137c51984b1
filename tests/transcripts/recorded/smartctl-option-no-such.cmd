smartctl --frobnicate /dev/sda
