setpci -s 00:10.0 NONSENSE.w
