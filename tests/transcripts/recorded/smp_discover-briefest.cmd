smp_discover -mbb /dev/bsg/expander-1:0
