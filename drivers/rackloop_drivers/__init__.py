"""Drivers: one ability on one kind of box, each beside a peer that simulates the box on the wire."""
