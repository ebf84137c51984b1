"""Write docs/reference/rack.md: everything a test may ask of ``rack``, and what each kind of lab does for it.

``python tools/rack_reference.py``, in the environment of the tests, after a change to ``rack``, to the abilities of
labs, or to a shipped lab. What a lab refuses is asked of the code; what does the work stands in ``_DONE_BY``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from rackloop.lab import Lab, load_lab
from rackloop_fixtures import Rack
from rackloop_fixtures.rack.abilities import RackAbilities
from rackloop_labs.lacking import OF_FAULTS, OFFERS, abilities, refusal

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "rack.md"
LABS = ("mock", "mock-direct", "virtual", "virtual-direct", "example-rack", "direct-attached")
"""The shipped labs that are asked: simulated ones, of guests, of equipment; with a switch and without."""

_ROLE = re.compile(r":[a-z]+:`~?(?:[\w.]*\.)?(\w+)`")
_SAME = ("the harness", "the harness", "the harness")
_PROBE = ("rackprobe on a simulated server, to rackd's exports", "rackprobe on the guest", "rackprobe on the server")
_FIO = (
    "fio on a simulated server, to rackd's exports",
    "fio on the guest, to its node",
    "fio on the server, to its node",
)
_SWITCH = (
    "the simulated switch; rackd joins at once",
    "the simulated switch; guests lose and get drives",
    "the switch",
)
_DONE_BY: dict[str, tuple[str, str, str]] = {
    "any_drive": _SAME,
    "place_of": _SAME,
    "sleep": _SAME,
    "unplug": (
        "the simulated switch's PHY, or a simulated server's slot or link",
        "the switch's PHY, or the guest's slot or link",
        "the switch's PHY, or the server's slot or link",
    ),
    "unplugged": ("as `unplug`", "as `unplug`", "as `unplug`"),
    "power_cycle": (
        "simulated controller or outlet, else rackd",
        "QEMU, behind its controllers and outlets",
        "controller or outlet",
    ),
    "fio": _FIO,
    "fio_meanwhile": _FIO,
    "provision": ("Ansible to simulated servers", "Ansible to guests", "Ansible to servers"),
    "bench": _SAME,
    "lab": _SAME,
    "clock": _SAME,
    "baseline": _SAME,
    "chance": _SAME,
    "fabric": _SWITCH,
    "phy": (
        "the simulated switch, or a simulated server's sysfs",
        "the simulated switch, or a guest's sysfs",
        "the switch, a breaker, or a server's sysfs",
    ),
    "links": (
        "a simulated server's sysfs, where there is no switch",
        "a guest's sysfs, where there is no switch",
        "a server's sysfs, where there is no switch",
    ),
    "faults": ("rackd, labd and simulated servers", "guests, switch and power", "servers, switch and power"),
    "play": ("as `faults`", "as `faults`", "as `faults`"),
    "breakable": ("rackd, labd and simulated servers", "guests and their boxes", "servers and boxes"),
    "power": (
        "simulated controllers and outlets; rackd where there is none",
        "QEMU behind both",
        "controllers and outlets",
    ),
    "deadline": ("10 s (`act` of its times)", "60 s", "10 s"),
    "new_request_id": _SAME,
    "drive_at": _SAME,
    "device": ("rackd's export of the port", "the port's by-path name", "the port's by-path name"),
    "writable": (
        "the guard; an export has no claim",
        "the guard; rackprobe holds the node",
        "the guard; rackprobe holds the node",
    ),
    "fill": _PROBE,
    "fill_all": _PROBE,
    "failing_fast": (
        "nothing: each read of a simulated drive says so",
        "the guest's tools",
        "the server's tools",
    ),
    "attach": _SWITCH,
    "stage_attach": _SWITCH,
    "trigger": _SWITCH,
    "remapping": (
        "stages by rackd's log; mounts nothing",
        "stages by the guest's kernel, which mounts",
        "stages by the server's kernel, which mounts",
    ),
    "verified_writes": _FIO,
    "watching": _PROBE,
    "swapped_reads": _PROBE,
    "replaying": _FIO,
    "plot": _SAME,
}
_HEAD = """\
# What a test may ask of the rack

<!-- Written by tools/rack_reference.py from the code. -->

Everything of the fixture `rack`, and what does it in each kind of lab. Arguments and errors are on the page of the
[fixtures](fixtures.md#the-rack). One code path serves virtual and physical racks; a mock rack has simulated servers
where no kernel is needed.

| `rack.` | it does, or is | mock | virtual | physical |
|---|---|---|---|---|
"""
_ABILITIES = """
## Abilities by name

What a test [requires](plan-file.md#what-may-be-skipped), as the shipped labs offer it by their descriptions, before
anything is touched. What a lab lacks blocks a test, unless the plan says that it may be skipped.

"""
_FAULTS = """
## Faults

The [faults](faults.md) that some part of each shipped lab can have, by its description. A test requires one as
`fault.KIND`.

"""
_LACKS = """
## What is lacking, and why

"""


def page() -> str:
    """The whole page."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from (_row(name, member) for kind in (Rack, RackAbilities) for name, member in _members(kind))
    labs = {name: load_lab(ROOT / "labs" / f"{name}.yaml") for name in LABS}
    yield from _ABILITIES.splitlines()
    yield from _offered(labs, list(OFFERS))
    yield from _FAULTS.splitlines()
    yield from _offered(labs, [ability for ability in abilities() if ability.startswith(OF_FAULTS)])
    yield from _LACKS.splitlines()
    for ability in OFFERS:
        for why in dict.fromkeys(_why(lab, ability) for lab in labs.values()):
            if why is not None:
                yield f"- `{ability}`: {why}."


def _members(kind: type) -> Iterator[tuple[str, object]]:
    return ((name, member) for name, member in vars(kind).items() if not name.startswith("_"))


def _row(name: str, member: object) -> str:
    if name not in _DONE_BY:
        raise ValueError(f"rack.{name} is new: say in {Path(__file__).name} what does its work in each kind of lab")
    said = inspect.cleandoc(member.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
    first = re.split(r"(?<=[.;])\s|: see", _ROLE.sub(r"`\1`", said))[0].rstrip(".;")
    call = f"`{name}`" if isinstance(member, property) else f"`{name}()`"
    return f"| {call} | {first} | {' | '.join(_DONE_BY[name])} |"


def _offered(labs: dict[str, Lab], names: list[str]) -> Iterator[str]:
    yield f"| ability | {' | '.join(f'`{name}`' for name in labs)} |"
    yield f"|---|{'---|' * len(labs)}"
    for ability in names:
        cells = ("yes" if refusal(lab, ability) is None else "no" for lab in labs.values())
        yield f"| `{ability.removeprefix(OF_FAULTS)}` | {' | '.join(cells)} |"


def _why(lab: Lab, ability: str) -> str | None:
    """The reason for a refusal, whatever the lab is called."""
    why = refusal(lab, ability)
    return why and re.sub(rf"\b{re.escape(lab.name)}\b", "LAB", why)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
