smp_discover -l --phy=2 /dev/bsg/expander-1:0
