"""Looking at a rack: its cabling, its health, and what its logs say of one moment."""
