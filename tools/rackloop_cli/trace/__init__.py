"""The trace commands."""
