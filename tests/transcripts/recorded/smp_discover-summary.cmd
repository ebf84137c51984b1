smp_discover /dev/bsg/expander-1:0
