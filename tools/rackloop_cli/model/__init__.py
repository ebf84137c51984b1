"""The model commands."""
