"""What an emulated tool prints, held against a recording of the real one, field by field and line by line.

A finding is one line such as ``missing disks[].wwn``. Findings that are meant to be are declared with their reason;
one that is not declared fails the check, and so does a declaration that nothing needs any longer.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

RECORDED = Path(__file__).parent / "recorded"

_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_DATE = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?: [A-Z]{3,4})?")
# A number right-aligned in a column takes the spaces before it along; a hexadecimal one is more than its digits.
_NUMBER = re.compile(r" *\b(?:0x[0-9a-fA-F]+|\d[\d,.]*)")


@dataclass(frozen=True)
class Recording:
    """One command as a real kernel answered it: ``argv`` is what was typed."""

    argv: tuple[str, ...]
    stdout: str
    stderr: str
    status: int

    @property
    def document(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.stdout)


def recording(name: str) -> Recording:
    """The recording NAME of ``tests/transcripts/recorded``: NAME.cmd, NAME.out, and NAME.err that ends in ``rc=N``."""
    *stderr, status = (RECORDED / f"{name}.err").read_text().splitlines(keepends=True)
    return Recording(
        argv=tuple((RECORDED / f"{name}.cmd").read_text().split()),
        stdout=(RECORDED / f"{name}.out").read_text(),
        stderr="".join(stderr),
        status=int(status.removeprefix("rc=")),
    )


@dataclass
class _Shape:
    """What stands at one place of a JSON document, over all elements of a list there: types, and what is below."""

    types: set[str] = field(default_factory=set)
    below: dict[str, _Shape] = field(default_factory=dict)


def _add(shape: _Shape, value: Any) -> None:
    if isinstance(value, dict):
        shape.types.add("object")
        children = [(f".{key}", child) for key, child in value.items()]
    elif isinstance(value, list):
        shape.types.add("list")
        children = [("[]", child) for child in value]
    else:
        shape.types.add(_JSON_TYPES[type(value)])
        children = []
    for step, child in children:
        _add(shape.below.setdefault(step, _Shape()), child)


def json_drift(real: Any, emulated: Any) -> list[str]:
    """How two JSON documents differ in structure: fields missing or extra, of another type, in another order.

    The elements of a list are taken together: what one of them has, the list has. What is below a missing or extra
    field is not listed again.
    """
    shapes = _Shape(), _Shape()
    _add(shapes[0], real)
    _add(shapes[1], emulated)
    return list(_compare("", *shapes))


def _compare(path: str, real: _Shape, emulated: _Shape) -> Iterator[str]:
    if real.types != emulated.types:
        yield f"type {path or '.'}: {'|'.join(sorted(emulated.types))}, not {'|'.join(sorted(real.types))}"
    for step in real.below:
        if step not in emulated.below:
            yield f"missing {(path + step).lstrip('.')}"
    for step in emulated.below:
        if step not in real.below:
            yield f"extra {(path + step).lstrip('.')}"
    common = [step for step in real.below if step in emulated.below]
    if common != [step for step in emulated.below if step in real.below]:
        yield f"order {path or '.'}"
    for step in common:
        yield from _compare((path + step).lstrip("."), real.below[step], emulated.below[step])


def text_drift(real: str, emulated: str) -> list[str]:
    """How two texts differ line by line, numbers and dates apart: ``missing LINE``, ``extra LINE``.

    Spaces count, those before a number apart, so that columns and labels are held to the real ones.
    """
    before, after = ([_line_shape(line) for line in text.splitlines()] for text in (real, emulated))
    findings = []
    for tag, from_, to, at, until in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            findings += [f"missing {line}" for line in before[from_:to]]
            findings += [f"extra {line}" for line in after[at:until]]
    return findings


def _line_shape(line: str) -> str:
    return _NUMBER.sub(" #", _DATE.sub("DATE", line))


def answer_drift(real: Recording, stdout: str, stderr: str, status: int) -> list[str]:
    """How the answer to a recorded command differs: its output, as JSON where the real one is, and its status."""
    # Lines of lsscsi begin with a bracket, too.
    if real.stdout.startswith(("{", "[{", "[\n")):
        findings = json_drift(real.document, json.loads(stdout))
    else:
        findings = text_drift(real.stdout, stdout)
    findings += [f"stderr: {finding}" for finding in text_drift(real.stderr, stderr)]
    return findings + ([f"status {status}, not {real.status}"] if status != real.status else [])


Declared: TypeAlias = Mapping[str, str]
"""Findings that are meant to be, each with the reason; ``*`` stands for anything."""


def undeclared(findings: Sequence[str], declared: Declared) -> list[str]:
    """The findings nobody declared, and the declarations that nothing needs."""
    matching = {key: re.compile(".*".join(map(re.escape, key.split("*")))) for key in declared}
    return [finding for finding in findings if not any(key.fullmatch(finding) for key in matching.values())] + [
        f"declared but not so: {key}" for key, pattern in matching.items() if not any(map(pattern.fullmatch, findings))
    ]
