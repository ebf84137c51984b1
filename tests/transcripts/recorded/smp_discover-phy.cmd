smp_discover --phy=2 /dev/bsg/expander-1:0
