"""Commands in messages with the lab as the user gave it: one whose file is elsewhere is not found by its name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_COMMAND = re.compile(r"`rackloop [^`]+`")
_NAME = re.compile(r"^name: *(['\"]?)([\w-]+)\1 *(?:#.*)?$", re.MULTILINE)


def as_given(said: str, arguments: Sequence[str]) -> str:
    """``said``, its commands for a lab that ``arguments`` name by a file with that file in place of the lab's name."""
    if _COMMAND.search(said) is None:
        return said
    files = dict(_labs(arguments))
    if not files:
        return said
    word = re.compile(rf"(?<=[ =])(?:{'|'.join(map(re.escape, files))})(?=[ `])")
    return _COMMAND.sub(lambda command: word.sub(lambda name: files[name[0]], command[0]), said)


def _labs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The name of each lab whose file is among the arguments, and the file as a shell takes it."""
    for argument in arguments:
        file = argument.removeprefix("--lab=")
        if file.endswith((".yaml", ".yml")):
            with suppress(OSError, ValueError):
                if found := _NAME.search(Path(file).expanduser().read_text(encoding="utf-8")):
                    yield found[2], shlex.quote(file)
