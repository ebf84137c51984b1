smp_discover --my /dev/bsg/expander-1:0
