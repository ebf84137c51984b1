"""Lab descriptions: one YAML file a rack, checked whole before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rackloop.description._document import Document, Plain, compose_file
from rackloop.description._examine import Examined, examine
from rackloop.description._places import find_description, shipped
from rackloop.description._profiles import PROFILES, Profile
from rackloop.description._rack import (
    Bmc,
    BmcDriver,
    Control,
    Drive,
    Expander,
    Fabric,
    FabricDriver,
    Lab,
    LabKind,
    Pdu,
    PduDriver,
    Server,
    Stack,
)
from rackloop.description._wiring import UNIQUE_IDENTIFIERS, check_wiring
from rackloop.errors import DescriptionError, Problem

__all__ = [
    "PROFILES",
    "Bmc",
    "BmcDriver",
    "Control",
    "Drive",
    "Expander",
    "Fabric",
    "FabricDriver",
    "Lab",
    "LabKind",
    "Pdu",
    "PduDriver",
    "Profile",
    "Server",
    "Stack",
    "check_files",
    "json_schema",
    "load_lab",
]

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


def load_lab(path_or_name: str | Path) -> Lab:
    """The lab a file describes. A bare name such as ``mock`` finds ``labs/mock.yaml`` here, then among those shipped.

    Raises BadInput where there is no such file, DescriptionError with every problem the file has.
    """
    path = find_description(path_or_name, "lab description", (Path("labs"), shipped("labs")))
    return _examined(path, compose_file(path)).finish()


def check_files(paths: Iterable[Path]) -> list[Checked]:
    """Each file, and each YAML file in each folder, with its lab or everything that is wrong with it.

    A fleet is one file a rack: two racks must not share a name, and a drive must not be in two of them.
    """
    labs: dict[Path, Lab | None] = {}
    problems: dict[Path, list[Problem]] = {}
    for path in _files(paths):
        try:
            examined = _examined(path, compose_file(path))
            labs[path], problems[path] = examined.value, examined.problems
        except DescriptionError as error:
            labs[path], problems[path] = None, list(error.problems)
    for path, where, message in _clashes(labs):
        problems[path].append(compose_file(path).problem(where, message))
    return [
        (path, lab if lab and not problems[path] else DescriptionError(problems[path])) for path, lab in labs.items()
    ]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a lab description, for editors that complete and check as one types."""
    schema = Lab.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Rackloop lab description"}


def _examined(path: Path, document: Document) -> Examined[Lab]:
    examined = examine(document, Lab, context={"file": path.absolute()}, stand_ins=_STAND_INS)
    check_wiring(examined)
    return examined


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in dict.fromkeys(paths):
        if path.is_dir():
            yield from sorted(entry for entry in path.iterdir() if entry.suffix in (".yaml", ".yml"))
        else:
            yield path


def _clashes(labs: Mapping[Path, Lab | None]) -> Iterator[tuple[Path, tuple[str, ...], str]]:
    """What two files both claim: the second one's path, the place in it and the message."""
    first: dict[tuple[str, str], tuple[Path, str]] = {}
    for path, lab in labs.items():
        if lab is None:
            continue
        claims: list[tuple[tuple[str, str], tuple[str, ...]]] = [(("lab", lab.name), ("name",))]
        for name, drive in lab.drives.items():
            given = ((identifier, getattr(drive, identifier)) for identifier in UNIQUE_IDENTIFIERS)
            claims += [(claim, ("drives", name, claim[0])) for claim in given if claim[1] is not None]
        for claim, where in claims:
            other_path, other_where = first.setdefault(claim, (path, ".".join(where)))
            if other_path is not path:
                what = "the name" if claim[0] == "lab" else f"the {claim[0]}"
                yield (
                    path,
                    where,
                    f"{what} {claim[1]} is already taken by {other_where} in {other_path}; a fleet has each once",
                )
