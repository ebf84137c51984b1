smp_discover --phy=8 /dev/bsg/expander-1:0
