smp_discover --adn /dev/bsg/expander-1:0
