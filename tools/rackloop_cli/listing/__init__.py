"""Lists of labs, plans, tests and drivers, as tables, lines or JSON."""
