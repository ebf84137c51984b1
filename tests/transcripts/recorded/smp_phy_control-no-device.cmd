smp_phy_control --phy=1 --op=lr /dev/bsg/expander-6:0
