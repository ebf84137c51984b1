"""Lab descriptions: one YAML file a rack, checked whole before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os.path import realpath
from pathlib import Path
from typing import Any

from rackloop.data import data_path
from rackloop.drive_identifiers import UNIQUE_IDENTIFIERS
from rackloop.errors import BadInput, DescriptionError, Problem
from rackloop.lab._rack import Lab
from rackloop.lab._wiring import check_wiring
from rackloop.lab.yaml import SUFFIXES, Examined, Plain, compose_file, examine, find_description

_Claim = tuple[str, str]
Checked = tuple[Path, Lab | DescriptionError]

# What a check of several parts can do without knowing; the guesses are never judged themselves.
_STAND_INS: dict[tuple[str, ...], Plain] = {
    ("name",): "unnamed",
    ("kind",): "mock",
    ("fabric",): {"driver": "flexfabric"},
    ("fabric", "driver"): "flexfabric",
    ("drives", "*", "profile"): "sata-ssd",
    ("drives", "*", "serial"): "unknown",
    ("drives", "*", "size"): "8 GiB",
    ("drives", "*", "scratch"): "false",
    ("expanders", "*", "slots"): "256",
    ("pdus", "*", "driver"): "redfish",
    ("pdus", "*", "outlets"): "256",
}


def find_lab(path_or_name: str | Path) -> Path:
    """The file of a lab: a path, or a bare name such as ``mock`` for ``labs/mock.yaml`` here, then among those shipped.

    Raises BadInput where there is no such file.
    """
    return find_description(path_or_name, "lab description", (Path("labs"), data_path("labs")))


def load_lab(path_or_name: str | Path) -> Lab:
    """The lab that a file describes, found as by :func:`find_lab`.

    Raises BadInput where there is no such file, DescriptionError with every problem the file has.
    """
    return _examined(find_lab(path_or_name)).finish()


def check_files(paths: Iterable[Path]) -> list[Checked]:
    """Each file, and each YAML file in each folder, with its lab or everything that is wrong with it.

    A fleet is one file a rack: two racks must not share a name, and a drive must not be in two of them.
    Raises BadInput where a folder cannot be listed.
    """
    labs: dict[Path, Lab | None] = {}
    problems: dict[Path, list[Problem]] = {}
    first: dict[_Claim, tuple[Path, str]] = {}
    for path in _files(paths):
        labs[path], problems[path] = None, []
        try:
            examined = _examined(path)
        except DescriptionError as error:
            problems[path] += error.problems
            continue
        for claim, where in _claims(examined):
            other_path, other_where = first.setdefault(claim, (path, ".".join(where)))
            if other_path != path:
                what = f"the {claim[0]} {claim[1]} is already given at {other_where} in {other_path}"
                examined.report(where, f"{what}; a fleet has each once")
        labs[path], problems[path] = examined.value, examined.problems
    return [
        (path, lab if lab and not problems[path] else DescriptionError(problems[path])) for path, lab in labs.items()
    ]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a lab description, for editors that complete and check as one types."""
    schema = Lab.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Rackloop lab description"}


def _examined(path: Path) -> Examined[Lab]:
    examined = examine(compose_file(path), Lab, stand_ins=_STAND_INS)
    check_wiring(examined)
    return examined


def _files(paths: Iterable[Path]) -> Iterable[Path]:
    """The files to check, each once, by whatever name it is given."""
    found: dict[str, Path] = {}
    for path in paths:
        try:
            files = sorted(entry for entry in path.iterdir() if entry.suffix in SUFFIXES) if path.is_dir() else [path]
        except OSError as error:
            raise BadInput(f"the folder {path} cannot be listed: {error.strerror}; check its owner and mode") from None
        for file in files:
            found.setdefault(realpath(file), file)
    return found.values()


def _claims(examined: Examined[Lab]) -> Iterator[tuple[_Claim, tuple[str, ...]]]:
    """The names that no other rack of a fleet may have too, with their places in the file."""
    lab = examined.value
    if lab is None:
        return
    if examined.is_sound("name"):
        yield ("name", lab.name), ("name",)
    for name, drive in lab.drives.items():
        for identifier in UNIQUE_IDENTIFIERS:
            where = ("drives", name, identifier)
            if (value := getattr(drive, identifier)) is not None and examined.is_sound(*where):
                yield (identifier, value), where
