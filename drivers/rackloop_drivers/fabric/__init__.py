"""Circuit switches and other ways to say which drive a server sees."""
