smp_discover -b -p 2 /dev/bsg/expander-1:0
