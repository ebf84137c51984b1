"""A profile file as it is written: a kind of drive, its timing model, and the figures that model is held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from rackloop.drive_identifiers import IDENTIFIERS
from rackloop.lab.yaml import Description, Flag, Plain, Size, Text, matching, one_of, text_of, whole
from rackloop.units import INTEGER, NUMBER

_WORDS = {"true": True, "false": False}


class WrittenPublished(Description):
    """A figure that was published of the drive that the profile is like."""

    figure: Annotated[str, matching(r"[a-z][A-Za-z0-9]*(?:\.[A-Za-z0-9]+)*", "a figure such as sequential.read.outer")]
    """Which figure, such as seek.read.average, sequential.read or randread.iops.depth32.4KiB."""
    value: Text
    """Its value with its unit, such as 8.5 ms, 175 MB/s or 98 k."""
    within: Text
    """How far from it the model may be, such as 10%."""
    source: Annotated[str, matching(r"(?s)\S.{0,500}", "a sentence that says where it was published")]
    """Where it was published."""


class WrittenProfile(Description):
    """A whole profile file."""

    profile: Annotated[
        str, matching(r"[a-z][a-z0-9-]{0,31}", "a name of small letters, digits and '-', such as sata-hdd")
    ]
    """The profile's name; the file has the same."""
    protocol: Annotated[str, one_of(("sata", "sas", "nvme"))]
    """What the drive speaks: sata, sas or nvme."""
    model: Text
    """The model that a simulated drive reports."""
    firmware: Text
    """The firmware revision that a simulated drive reports."""
    sector_bytes: Annotated[int, whole(512, 65536)]
    """The logical sector, such as 512 or 4096."""
    rotational: Flag
    """Whether it has platters."""
    identifiers: Annotated[tuple[Annotated[str, one_of(IDENTIFIERS)], ...], Field(min_length=1)]
    """The identifiers such a drive reports besides its serial, the usual one first."""
    like: Text
    """The published drive whose figures these are."""
    capacity: Size
    """The capacity of that drive; a simulated one of another size has its mechanics or flash scaled."""
    sources: tuple[Annotated[str, matching(r"(?s)\S.{0,500}", "a document and where in it")], ...] = ()
    """The documents the parameters come from."""
    timing: Annotated[Mapping[str, Any], Field(min_length=1)]
    """The timing model, by kind (ideal, hdd or ssd), and its parameters."""
    published: tuple[WrittenPublished, ...] = ()
    """The published figures that the model is held against."""


def parameter(value: Plain) -> Any:
    """A timing parameter from its text: a number, true or false, else the text; lists and groups by their parts."""
    match value:
        case dict():
            return {key: parameter(part) for key, part in value.items()}
        case list():
            return [parameter(part) for part in value]
        case str() if INTEGER.fullmatch(value):
            return int(value)
        case str() if NUMBER.fullmatch(value):
            return float(value)
        case _:
            text = text_of(value, "a number, true, false or a word")
            return _WORDS.get(text, text)
