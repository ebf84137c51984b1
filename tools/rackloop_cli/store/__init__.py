"""The store commands."""
