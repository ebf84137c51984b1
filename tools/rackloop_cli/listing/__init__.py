"""What there is to name: labs, plans, tests and drivers, as tables, lines or JSON."""
