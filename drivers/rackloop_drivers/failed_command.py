"""The reason that a command on a server gave for its failure."""

from __future__ import annotations

from rackloop.abilities import Completed


def failure_of(completed: Completed) -> str:
    """The standard error of a command that failed; where it is empty, the exit status in words."""
    return completed.stderr.strip() or f"exit status {completed.status}"
