smp_discover --phy=300 /dev/bsg/expander-1:0
