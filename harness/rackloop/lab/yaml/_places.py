"""The places where users' files are found by name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rackloop.errors import BadInput
from rackloop.names import guess

SUFFIXES = (".yaml", ".yml")


def find_description(path_or_name: str | Path, what: str, folders: Iterable[Path]) -> Path:
    """The file at a path, or ``NAME.yaml`` in the first of ``folders`` that has it.

    A name is what has neither a folder nor a suffix. Raises BadInput where there is no such file.
    """
    path = Path(path_or_name).expanduser()
    if path.suffix in SUFFIXES or len(path.parts) != 1:
        if path.is_file():
            return path
        raise BadInput(f"there is no {what} at {path}; check the path")
    looked_in = list(dict.fromkeys(folders))
    found = [folder / f"{path}{suffix}" for folder in looked_in for suffix in SUFFIXES]
    if first := next((candidate for candidate in found if candidate.is_file()), None):
        return first
    known = {
        entry.stem for folder in looked_in if folder.is_dir() for entry in folder.iterdir() if entry.suffix in SUFFIXES
    }
    places = " and ".join(str(folder) for folder in looked_in)
    raise BadInput(f"no {what} is named {str(path)!r} in {places}; {guess(str(path), known)}")
