"""What holds for every test here. The plugin comes by its entry point and is never named in a conftest."""

from hypothesis import settings

# The same examples on every machine and every day: a test passes for certain or fails for certain.
settings.register_profile("rackloop", derandomize=True, deadline=None, database=None)
settings.load_profile("rackloop")
