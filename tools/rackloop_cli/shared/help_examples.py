"""The examples that end a verb's help."""

from __future__ import annotations


def examples(*commands: str) -> str:
    """An epilog with a line for each command; the first character keeps the lines from being filled."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))
