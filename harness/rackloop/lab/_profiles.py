"""Drive profiles: what all drives of a kind have in common, and how a simulated one takes its time.

One YAML file a kind, with the source of every parameter; those shipped lie in ``labs/profiles/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.lab._profilefile import WrittenProfile, parameter
from rackloop.lab.yaml import SUFFIXES, Examined, Plain, compose_file, examine, find_description
from rackloop.names import guess
from rackloop.units import parse_quantity

__all__ = ["Profile", "Published", "load_profile", "profile_names"]

# What the published figures are checked without; the guesses are never judged themselves.
_STAND_INS: dict[tuple[str, ...], Plain] = {
    ("profile",): "unnamed",
    ("protocol",): "sata",
    ("model",): "unknown",
    ("firmware",): "unknown",
    ("sector_bytes",): "512",
    ("rotational",): "false",
    ("identifiers",): ["wwn"],
    ("like",): "unknown",
    ("capacity",): "1 TB",
    ("timing",): {"kind": "ideal"},
}
_UNITS = {"seek": "s", "rotation": "s", "sequential": "B/s"}


@dataclass(frozen=True)
class Published:
    """A figure that was published of a drive: ``value`` in ``unit``, an SI base unit; ``within`` is a ratio."""

    figure: str
    value: float
    unit: str
    within: float
    source: str


@dataclass(frozen=True)
class Profile:
    """A kind of drive. ``identifiers`` are those such a drive reports besides its serial, the usual one first.

    ``timing`` is what rackd and drivesim take: ``{"kind": "ideal" | "hdd" | "ssd", ...parameters}``.
    ``capacity_bytes`` is that of the published drive it is ``like``.
    """

    name: str
    protocol: str
    model: str
    firmware: str
    sector_bytes: int
    is_rotational: bool
    identifiers: tuple[str, ...]
    like: str
    capacity_bytes: int
    timing: Mapping[str, Any]
    published: tuple[Published, ...]

    def with_parameters(self, changes: Mapping[str, Any]) -> Profile:
        """The profile with other values of some of its timing parameters, as a description writes them.

        Raises BadInput for a parameter it does not have, and for a value of another kind than its own.
        """
        changed = dict(self.timing)
        for name, written in changes.items():
            if name not in self.timing:
                raise BadInput(f"the profile {self.name} has no parameter {name!r}; {guess(name, self.timing)}")
            value, own = parameter(written), self.timing[name]
            if _kind(value) is not _kind(own):
                raise BadInput(f"{name}: expected {_KINDS[_kind(own)]} such as {own}, found {written!r}")
            changed[name] = value
        return replace(self, timing=changed)


_KINDS: dict[type, str] = {
    float: "a number",
    bool: "true or false",
    str: "a word",
    list: "a list",
    dict: "a group of parameters",
}


def _kind(value: object) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


@cache
def profile_names() -> tuple[str, ...]:
    """The profiles that are shipped, in order. Looked for once."""
    return tuple(sorted(path.stem for path in _folder().iterdir() if path.suffix in SUFFIXES))


@cache
def load_profile(path_or_name: str | Path) -> Profile:
    """The profile in a file, or the one shipped under a name such as ``sata-hdd``. Read once.

    Raises BadInput where there is no such file or profile, DescriptionError with every problem the file has.
    """
    path = find_description(path_or_name, "drive profile", (_folder(),))
    examined = examine(compose_file(path), WrittenProfile, context={"file": path.absolute()}, stand_ins=_STAND_INS)
    published = _published(examined)
    written = examined.finish()
    return Profile(
        name=written.profile,
        protocol=written.protocol,
        model=written.model,
        firmware=written.firmware,
        sector_bytes=written.sector_bytes,
        is_rotational=written.rotational,
        identifiers=written.identifiers,
        like=written.like,
        capacity_bytes=written.capacity,
        timing={name: parameter(value) for name, value in written.timing.items()},
        published=published,
    )


def _folder() -> Path:
    return data_path("labs") / "profiles"


def _published(examined: Examined[WrittenProfile]) -> tuple[Published, ...]:
    """The published figures with their values; what is not a value is reported."""
    found = []
    for index, written in enumerate(examined.value.published if examined.value else ()):
        unit = "s" if ".latency." in written.figure else _UNITS.get(written.figure.partition(".")[0], "1")
        values = {}
        for key, text, of in (("value", written.value, unit), ("within", written.within, "1")):
            try:
                values[key] = parse_quantity(text, of)
            except ValueError as error:
                examined.report(("published", index, key), str(error))
        if len(values) == 2:
            found.append(Published(written.figure, values["value"], unit, values["within"], written.source))
    return tuple(found)
