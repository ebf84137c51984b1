"""``reboot``, ``poweroff``, ``halt`` and ``shutdown`` of a mock server, as systemd's read their command lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from rackloop_labs.mock_hosts._view import Answer

POWER_TOOLS = frozenset({"halt", "poweroff", "reboot", "shutdown"})

_MINUTE_S = 60.0


class PowerAct(Enum):
    """A change of the server's power."""

    REBOOT = auto()
    POWER_OFF = auto()
    HALT = auto()
    CANCEL = auto()


@dataclass(frozen=True)
class Planned:
    """An act and how long from now it is; None plans nothing."""

    act: PowerAct
    in_s: float = 0.0


_ACTS = {"halt": PowerAct.HALT, "poweroff": PowerAct.POWER_OFF, "reboot": PowerAct.REBOOT}
_AT_ONCE_OPTIONS = {
    "--halt": PowerAct.HALT,
    "-p": PowerAct.POWER_OFF,
    "--poweroff": PowerAct.POWER_OFF,
    "--reboot": PowerAct.REBOOT,
}
_SHUTDOWN_OPTIONS = {
    "-H": PowerAct.HALT,
    "--halt": PowerAct.HALT,
    "-P": PowerAct.POWER_OFF,
    "-h": PowerAct.POWER_OFF,
    "--poweroff": PowerAct.POWER_OFF,
    "-r": PowerAct.REBOOT,
    "--reboot": PowerAct.REBOOT,
    "-c": PowerAct.CANCEL,
}
# They change how a kernel goes down, and a mock server has none.
_PASSED_OVER = frozenset({"-f", "--force", "-d", "--no-wtmp", "-n", "--no-sync", "--no-wall"})


def plan_power(tool: str, argv: Sequence[str], now: datetime) -> tuple[Answer, Planned | None]:
    """The output of one of the :data:`POWER_TOOLS`, and the server's change of power; ``now`` is the server's clock."""
    is_shutdown = tool == "shutdown"
    options = _SHUTDOWN_OPTIONS if is_shutdown else _AT_ONCE_OPTIONS
    act = _ACTS.get(tool, PowerAct.POWER_OFF)
    words: list[str] = []
    for word in argv:
        if word in options:
            act = options[word]
        elif word.startswith("-") and word not in _PASSED_OVER:
            return Answer(stderr=f"{tool}: unrecognized option '{word}'\n", status=1), None
        elif not word.startswith("-"):
            words.append(word)
    if act is PowerAct.CANCEL or not is_shutdown:
        return Answer(), Planned(act)
    when = words[0] if words else "+1"
    in_s = _delay_s(when, now)
    if in_s is None:
        return Answer(stderr=f"Failed to parse time specification: {when}\n", status=1), None
    if in_s == 0:
        return Answer(), Planned(act)
    verb = "Reboot" if act is PowerAct.REBOOT else "Shutdown"
    at = (now + timedelta(seconds=in_s)).strftime("%a %Y-%m-%d %H:%M:%S %Z")
    return Answer(stderr=f"{verb} scheduled for {at}, use 'shutdown -c' to cancel.\n"), Planned(act, in_s)


def _delay_s(when: str, now: datetime) -> float | None:
    """The seconds until ``now``, ``+MINUTES`` or ``hh:mm``; None where it is none of them."""
    if when == "now":
        return 0.0
    if when.removeprefix("+").isdecimal():
        return int(when.removeprefix("+")) * _MINUTE_S
    try:
        clock = datetime.strptime(when, "%H:%M").replace(tzinfo=now.tzinfo)
    except ValueError:
        return None
    at = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
    return ((at - now) % timedelta(days=1)).total_seconds()
