"""The places of the native programs, and of the one native library."""

from __future__ import annotations

import importlib.util
import os
import platform
from pathlib import Path
from typing import Literal

from rackloop.errors import ToolError

NativeProgram = Literal["blobload", "drivesim", "hosttool", "rackd", "rackprobe", "storageswitch"]
NativeLibrary = Literal["rackloop_erasure"]

BIN_VARIABLE = "RACKLOOP_NATIVE_BIN"

_MACHINE = platform.machine()
_CHECKOUT = Path(__file__).resolve().parents[2]


def find_binary(program: NativeProgram, machine: str = _MACHINE) -> Path:
    """The path of a native program for this machine, or for one of another kind as ``uname -m`` names it.

    Looked for in the directory that ``RACKLOOP_NATIVE_BIN`` names, and nowhere else where that is set; else in the
    installed rackloop-native wheel; else in the release build of this checkout. Programs for other machines lie there
    in a folder of the machine's name. Raises ToolError when it is in none.
    """
    candidates = _candidates("bin", program if machine == _MACHINE else f"{machine}/{program}")
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    raise _missing("program", program if machine == _MACHINE else f"{program} for {machine}", candidates)


def find_library(library: NativeLibrary) -> Path:
    """The path of a native library on this machine, looked for where ``find_binary`` looks.

    Raises ToolError when it is in none of the places.
    """
    file = f"lib{library}.so"
    candidates = _candidates("lib", file)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise _missing("library", file, candidates)


def _candidates(folder_of_wheel: str, file: str) -> list[Path]:
    if named := os.environ.get(BIN_VARIABLE):
        return [Path(named) / file]
    spec = importlib.util.find_spec("rackloop_native")
    folders = spec.submodule_search_locations if spec else None
    in_wheel = [Path(folder) / folder_of_wheel / file for folder in folders or ()]
    return [*in_wheel, _CHECKOUT / "native" / "target" / "release" / file]


def _missing(what: str, name: str, candidates: list[Path]) -> ToolError:
    places = ", nor at ".join(str(candidate) for candidate in candidates)
    advice = (
        f"{BIN_VARIABLE} must name the directory that holds it"
        if os.environ.get(BIN_VARIABLE)
        else f"install rackloop-native, build it (see native/build), or set {BIN_VARIABLE}"
    )
    return ToolError(f"the {what} {name} is not at {places}: {advice}")
