"""`rackloop console`: the serial console of a server, for people and pipes."""
