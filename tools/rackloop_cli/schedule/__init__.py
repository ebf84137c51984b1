"""The schedule commands."""
