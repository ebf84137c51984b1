smp_phy_control --phy=2 --op=hr /dev/bsg/expander-1:0
