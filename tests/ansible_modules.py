"""Modules that Ansible sends to servers, loaded into this process."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import ansible.module_utils  # type: ignore[import-untyped]

from rackloop.data import data_path

# Ansible sends along what a module imports from here.
ansible.module_utils.__path__.append(str(data_path("playbooks") / "module_utils"))


def loaded(path: Path) -> Any:
    """A program for servers as a module: it belongs to no package."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_of_ansible(name: str) -> Any:
    """A module of the playbooks."""
    return loaded(data_path("playbooks") / "library" / f"{name}.py")
