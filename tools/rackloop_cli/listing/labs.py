"""`rackloop lab list`: the lab descriptions that are found by name, and how each stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from rackloop.data import data_path
from rackloop.errors import EXIT_PASS, BadInput, DescriptionError, RackloopError
from rackloop.lab import Lab, LabKind, LabState, TimeName, load_lab, state_root
from rackloop.lab.yaml import SUFFIXES
from rackloop.units import counted, format_quantity
from rackloop_cli.listing.rows import print_json, print_rows


def run(*, as_json: bool) -> int:
    """Print the labs of ``labs/`` here and those that are shipped, by the name that each is called by."""
    found = [_described(name, path) for name, path in _files().items()]
    if as_json:
        print_json(labs=found)
    else:
        keys = ("name", "kind", "state", "servers", "drives", "fabric", "file")
        print_rows(keys, [[lab[key] for key in keys] for lab in found])
    return EXIT_PASS


def show(name: str, *, as_json: bool) -> int:
    """Print the servers of a lab: where each stands, its asset tag, its tags, and what it has; and its times."""
    lab = load_lab(name)
    found: list[dict[str, Any]] = [
        {
            "name": server,
            "place": str(one.place or ""),
            "asset": one.asset or "",
            "tags": list(one.tags),
            "ports": len(one.ports),
            "drives": lab.drives_of(server),
            "bmc": one.bmc.driver if one.bmc else "",
            "outlet": "/".join(map(str, one.outlet)) if one.outlet else "",
        }
        for server, one in lab.servers.items()
    ]
    if as_json:
        print_json(lab=lab.name, servers=found, times={name: lab.time_s(name) for name in get_args(TimeName)})
    else:
        keys = ("name", "place", "asset", "tags", "ports", "drives", "bmc", "outlet")
        lists = ("tags", "drives")
        rows = [[",".join(one[key]) if key in lists else one[key] for key in keys] for one in found]
        times = (f"{name} {format_quantity(lab.time_s(name), 's')}" for name in get_args(TimeName))
        print_rows(keys, rows, about=f"times: {', '.join(times)}")
    return EXIT_PASS


def _files() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in (Path("labs"), data_path("labs")):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.suffix in SUFFIXES:
                found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def _described(name: str, path: Path) -> dict[str, Any]:
    try:
        lab = load_lab(path)
    except DescriptionError as error:
        return _unread(name, path, counted(len(error.problems), "problem"))
    except BadInput as error:
        return _unread(name, path, str(error))
    return {
        "name": name,
        "kind": str(lab.kind),
        "state": _state(lab),
        "servers": len(lab.servers),
        "drives": len(lab.drives),
        "fabric": lab.fabric.driver,
        "file": str(path),
    }


def _unread(name: str, path: Path, why: str) -> dict[str, Any]:
    return {"name": name, "kind": "", "state": why, "servers": "", "drives": "", "fabric": "", "file": str(path)}


def _state(lab: Lab) -> str:
    """Up or down; equipment is always there."""
    if lab.kind is LabKind.PHYSICAL:
        return ""
    # A lab that never was up has no state, and gets none by being listed.
    if not (state_root() / "labs" / lab.name).is_dir():
        return "down"
    try:
        return "up" if LabState.of(lab.name).is_held() else "down"
    except RackloopError:
        return "?"
