smp_discover --phy=9 /dev/bsg/expander-1:0
