"""Completion of names in a shell: labs, plans and tests, as the commands find them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from rackloop.data import data_path

_VARIABLE = "_RACKLOOP_COMPLETE"


def complete_lab(incomplete: str) -> list[str]:
    """The names of labs, and the files and folders, that begin with ``incomplete``."""
    return _described("labs", incomplete)


def complete_plan(incomplete: str) -> list[str]:
    """The names of plans, and the files and folders, that begin with ``incomplete``."""
    return _described("testplans", incomplete)


def complete_test(incomplete: str) -> list[str]:
    """The names in plans of the shipped tests, that begin with ``incomplete``."""
    from rackloop.plan import files_by_name

    return sorted(name for name in files_by_name(data_path("testplans")) if name.startswith(incomplete))


def _described(folder: Literal["labs", "testplans"], incomplete: str) -> list[str]:
    names = {path.stem for where in (Path(folder), data_path(folder)) for path in where.glob("*.yaml")}
    return sorted(name for name in {*names, *_files(incomplete)} if name.startswith(incomplete))


def _files(incomplete: str) -> Iterator[str]:
    """The YAML files and the folders that are written as ``incomplete`` begins."""
    written, slash, _ = incomplete.rpartition("/")
    if not slash:
        yield from (path.name for path in Path().glob("[!.]*.yaml"))
        return
    for path in Path(written or "/").expanduser().glob("*"):
        if path.is_dir() or path.suffix == ".yaml":
            yield f"{written}/{path.name}{'/' if path.is_dir() else ''}"


def prepare_completion(environment: dict[str, str]) -> None:
    """Have Typer answer a shell, where one asks by the environment."""
    if _VARIABLE in environment:
        from typer.completion import get_completion_inspect_parameters

        # What it returns are options to install a completion; that it knows the shells afterwards is what is asked.
        get_completion_inspect_parameters()
