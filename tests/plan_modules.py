"""Tests of plans as modules: they belong to no package."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from rackloop.data import data_path


def plan_module(name: str) -> Any:
    """The module of a test that plans name so, such as ``faults/storm``."""
    folder, _, test = name.rpartition("/")
    path = data_path("testplans") / folder / f"test_{test}.py"
    spec = spec_from_file_location(f"plan_{test}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module
