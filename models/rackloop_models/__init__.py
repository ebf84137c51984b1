"""Reference systems that a rack may run, and adapters for systems under test."""
