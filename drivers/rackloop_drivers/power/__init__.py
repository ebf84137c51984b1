"""What can cut power."""
