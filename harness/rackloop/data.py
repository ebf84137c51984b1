"""The places of the files that users start from: lab descriptions, test plans, playbooks, sample traces."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rackloop.errors import ToolError

DataFolder = Literal["labs", "playbooks", "testplans", "traces"]

# Beside the package that reads traces.
_SAMPLES = {"traces": "traces/samples"}
_PACKAGE_PARENT = Path(__file__).resolve().parents[1]


def data_path(folder: DataFolder) -> Path:
    """The directory that holds ``folder``, in a checkout or in an installed wheel.

    A checkout keeps it at its root; the wheel carries it as package data, under ``rackloop_data``.
    Raises ToolError when neither is there.
    """
    checkout = _PACKAGE_PARENT.parent
    candidates = [_PACKAGE_PARENT / "rackloop_data" / folder]
    if (checkout / "pyproject.toml").is_file():
        candidates.insert(0, checkout / _SAMPLES.get(folder, folder))
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    places = ", nor at ".join(str(candidate) for candidate in candidates)
    raise ToolError(f"Rackloop's {folder}/ is not at {places}: the installation is incomplete, install it again")
