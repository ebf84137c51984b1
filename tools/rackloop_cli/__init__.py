"""The `rackloop` command."""

from rackloop_cli._early_interrupt import without_traceback as without_traceback
