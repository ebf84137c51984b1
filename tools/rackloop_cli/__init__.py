"""The `rackloop` command."""
