"""Programs that make I/O and measure it."""
