"""The dialect: how a command is put so that it runs at the far end. Replace ``env`` by what reaches the host."""

from __future__ import annotations

from collections.abc import Sequence


def command(reach: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
    """``argv`` as the command on this machine that runs it at the far end; ``reach`` gets there."""
    return (*reach, *argv)


def search(reach: Sequence[str], program: str) -> tuple[str, ...]:
    """The command on this machine that prints the path of ``program`` at the far end."""
    return command(reach, ("sh", "-c", 'command -v -- "$1"', "search", program))
