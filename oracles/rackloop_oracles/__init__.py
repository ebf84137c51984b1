"""Oracles: judges of what a system under test did, after the fact."""
