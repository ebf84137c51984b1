"""The behaviour every ability owes its callers: plain functions that take a driver factory and know no pytest."""
