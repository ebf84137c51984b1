sg_ses --join --filter /dev/sg0
