smp_phy_control --phy=20 --op=dis /dev/bsg/expander-1:0
