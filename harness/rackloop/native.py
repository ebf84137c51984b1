"""Where the native programs drivesim, hosttool, rackd and rackprobe lie."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Literal

from rackloop.errors import ToolError

NativeProgram = Literal["drivesim", "hosttool", "rackd", "rackprobe"]

BIN_VARIABLE = "RACKLOOP_NATIVE_BIN"

_CHECKOUT = Path(__file__).resolve().parents[2]


def find_binary(program: NativeProgram) -> Path:
    """The path of a native program on this machine.

    Looked for in the directory that ``RACKLOOP_NATIVE_BIN`` names, and nowhere else where that is set; else in the
    installed rackloop-native wheel; else in the release build of this checkout. Raises ToolError when it is in none.
    """
    if named := os.environ.get(BIN_VARIABLE):
        candidates = [Path(named) / program]
    else:
        candidates = [*_in_wheel(program), _CHECKOUT / "native" / "target" / "release" / program]
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    places = " nor ".join(str(candidate) for candidate in candidates)
    advice = (
        f"{BIN_VARIABLE} must name the directory that holds it"
        if named
        else f"install rackloop-native, build it (native/build), or set {BIN_VARIABLE}"
    )
    raise ToolError(f"the program {program} is neither at {places}: {advice}")


def _in_wheel(program: str) -> list[Path]:
    spec = importlib.util.find_spec("rackloop_native")
    folders = spec.submodule_search_locations if spec else None
    return [Path(folder) / "bin" / program for folder in folders or ()]
