smp_discover --phy=0 /dev/bsg/expander-1:0
