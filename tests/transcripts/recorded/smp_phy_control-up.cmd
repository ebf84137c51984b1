smp_phy_control --phy=8 --op=lr /dev/bsg/expander-1:0
