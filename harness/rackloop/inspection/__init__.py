"""Inspection of a rack: its cabling, its health, and its logs on one time base."""
