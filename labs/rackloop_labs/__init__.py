"""The three ways to have a rack: mock, virtual, physical."""
