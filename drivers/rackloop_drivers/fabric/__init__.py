"""Fabrics: the circuit switch, and fixed cabling."""
