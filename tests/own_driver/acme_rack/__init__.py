"""Drivers for the boxes of an ACME rack, and the boxes simulated."""
