"""The power commands."""
