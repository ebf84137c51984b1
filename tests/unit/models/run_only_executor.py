"""The part of a fake Executor that starts nothing and puts nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop.abilities import Process
from rackloop.errors import NotSupported


class RunOnlyExecutor:
    """An Executor without ``run``, which a fake adds; every program is found."""

    def start(self, argv: Sequence[str]) -> Process:
        raise NotSupported(f"{argv} is not started here")

    def find(self, program: str) -> str | None:
        return program

    def put_text(self, name: str, text: str) -> str:
        raise NotSupported(f"{name} with {text} is not put here")

    def close(self) -> None:
        pass
