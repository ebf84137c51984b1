smp_discover -m /dev/bsg/expander-1:0
