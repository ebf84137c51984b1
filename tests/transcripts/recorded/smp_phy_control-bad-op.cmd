smp_phy_control --phy=8 --op=zap /dev/bsg/expander-1:0
