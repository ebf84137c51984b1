"""The fabric commands."""
