"""Drivers: one ability on one kind of box, each beside the peer that speaks the box's bytes."""
