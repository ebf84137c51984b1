"""`rackloop trace replay`: the shipped replay plan with its parameters set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop_cli import run as plan_run
from rackloop_fixtures import RunRequest

if TYPE_CHECKING:
    from rackloop_fixtures import PreparedRun

_OPTIONS = {"drive": "--drive", "volume": "--volume", "duration_s": "--for"}
_SPELT = {**_OPTIONS, "from_s": "--from"}
_SETTING = re.compile(r"--set ([a-z_]+)=")


def run(given: Mapping[str, str | float | None], lab: str, *, out: Path | None, seed: int | None, dry_run: bool) -> int:
    """Run the plan with the parameters ``given``, None for its own value; returns the exit status of a run.

    Raises BadInput before anything was touched.
    """
    # To the plan, nothing means all of the trace, the first drive, every volume: not what an option was given for.
    for name, option in _OPTIONS.items():
        if (value := given[name]) is not None and not value:
            raise BadInput(f"{option} is {value!r}: give another value, or leave it out")
    settings = tuple(setting_of(name, value) for name, value in given.items() if value is not None)
    try:
        return plan_run.run(_ReplayRequest("replay", lab, out=out, seed=seed, settings=settings, dry_run=dry_run))
    except BadInput as error:
        raise BadInput(_SETTING.sub(_as_given, str(error))) from None


@dataclass(frozen=True)
class _ReplayRequest(RunRequest):
    """A request whose plan is said to be the command that was given: its place in a file is none that a user wrote."""

    def read(self) -> PreparedRun:
        prepared = super().read()
        given = dict(setting.split("=", 1) for setting in self.settings)
        words = ["trace replay", given.pop("trace")]
        words += [_option(name) if value == "true" else f"{_option(name)} {value}" for name, value in given.items()]
        tests = tuple(replace(entry, places={"": " ".join(words)}) for entry in prepared.plan.tests)
        return replace(prepared, plan=replace(prepared.plan, tests=tests))


def setting_of(name: str, value: str | float) -> str:
    """The setting of the plan that an option becomes; a number has all its digits."""
    return f"{name}={value if isinstance(value, str) else repr(value).removesuffix('.0')}"


def _as_given(setting: re.Match[str]) -> str:
    """The option that was given, where a message says the setting of the plan that it became."""
    return "" if setting[1] == "trace" else f"{_option(setting[1])} "


def _option(name: str) -> str:
    return _SPELT.get(name, f"--{name.replace('_', '-')}")
