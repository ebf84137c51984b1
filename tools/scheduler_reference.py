"""Write the tables at the end of docs/reference/storageswitch.md: every parameter of its schedulers.

``python tools/scheduler_reference.py`` after a change to their Rust sources, which it reads: comments of fields, the
``Default`` and the ``check``. tests/contracts/test_scheduler_parameters.py holds against them what the program says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generated import below_mark

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "storageswitch.md"
MARK = "<!-- What follows is written by tools/scheduler_reference.py. -->\n"
SOURCES = {
    "gimbal": "gimbal/parameters.rs",
    "reflex": "reflex/parameters.rs",
    "parda": "parda.rs",
    "flashfq": "flashfq.rs",
}
_FIELD = re.compile(r"((?: *///.*\n)+) *pub (\w+): (.+),\n")
_BOUNDS = re.compile(
    r"(within|above_zero)\(\s*(?:&format!\(\"\{name\}\.(\w+)\"\)|&name\(\"(\w+)\"\)|\"(\w+)\"),"
    r"\s*[*&]?[\w.]+,\s*([^,)]+?),?\s*(?:,\s*([^,)]+?),?\s*)?\)\?*"
)
# By the end of a name, the longest first.
_UNITS = {
    "_tokens_per_s": "tokens/s",
    "tokens_per_s": "tokens/s",
    "per_kib_us": "µs/KiB",
    "_mib_s": "MiB/s",
    "_mib": "MiB",
    "_kib": "KiB",
    "_us": "µs",
    "_ms": "ms",
}


@dataclass(frozen=True)
class Bounds:
    """The smallest value, None for what is above zero, and the largest; each a number or another parameter."""

    least: float | str | None
    most: float | str

    def __str__(self) -> str:
        least = "above 0" if self.least is None else _shown(self.least)
        return f"{least} to {_shown(self.most)}"


@dataclass(frozen=True)
class Parameter:
    """One parameter. ``bounds`` and ``default`` are None for a list of groups, whose own parameters have them."""

    name: str
    meaning: str
    kind: str
    default: str | None
    bounds: Bounds | None

    @property
    def unit(self) -> str:
        """The unit, as the end of the name says it; empty for a number of something, or a factor."""
        return next((unit for end, unit in _UNITS.items() if self.name.endswith(end)), "")


def parameters(scheduler: str) -> list[Parameter]:
    """The parameters of a scheduler, those of groups by their whole names: ``read_cost.base_us``, ``curve[].p95_us``.

    Raises KeyError for one whose default or range is not found in the source.
    """
    source = _source(scheduler)
    defaults, bounds = dict(_defaults(source)), dict(_bounds(source))
    found = []
    for name, meaning, kind in _fields(source, r"\w+Parameters"):
        inner = kind.removeprefix("Vec<").removesuffix(">")
        if not re.search(rf"pub struct {inner} ", source):
            found.append(Parameter(name, meaning, kind, defaults[name], bounds[name]))
            continue
        found.append(Parameter(name, meaning, kind, None, None))
        prefix = f"{name}[]." if kind != inner else f"{name}."
        found += [
            Parameter(prefix + of, text, of_kind, defaults[prefix + of], bounds[of])
            for of, text, of_kind in _fields(source, inner)
        ]
    return found


def page() -> str:
    """The whole page: what people wrote above the mark, and the tables below it."""
    return below_mark(PAGE, MARK, "".join(f"{line}\n" for line in _tables()))


def _tables() -> Iterator[str]:
    for scheduler in SOURCES:
        comment = _found(r"((?:///[^\n]*\n)+)(?:#[^\n]*\n)+pub struct \w+Parameters ", _source(scheduler))
        yield f"\n### {scheduler}\n"
        yield f"{_text(comment[1])}\n"
        yield "| parameter | meaning | unit | default | range |"
        yield "|---|---|---|---|---|"
        for one in parameters(scheduler):
            # Each of several numbers is in the range.
            bounds = "" if one.bounds is None else f"{one.bounds}{' each' if '[' in one.kind else ''}"
            yield f"| `{one.name}` | {one.meaning.removesuffix('.')} | {one.unit} | {one.default or ''} | {bounds} |"


def _source(scheduler: str) -> str:
    return (ROOT / "native" / "crates" / "schedulers" / "src" / SOURCES[scheduler]).read_text(encoding="utf-8")


def _fields(source: str, struct: str) -> Iterator[tuple[str, str, str]]:
    body = _found(rf"pub struct {struct} \{{\n(.*?)^\}}", source)
    for comment, name, kind in _FIELD.findall(body[1]):
        yield name, _text(comment), kind


def _text(comment: str) -> str:
    return " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())


def _defaults(source: str) -> Iterator[tuple[str, str]]:
    """The defaults by name; those of a list of groups one after the other."""
    block = _found(r"^impl Default for.*?\n        Self \{\n(.*?)^\}", source)
    group, listed = "", list[list[str]]()
    for line in map(str.strip, block[1].splitlines()):
        if opened := re.fullmatch(r"(\w+): (?:\w+ \{|\[)", line):
            group = opened[1] + ("." if line.endswith("{") else "[].")
        elif line in {"},", "]"}:
            group = ""
        elif single := re.fullmatch(r"(\w+): ([^\[{]+),", line):
            yield group + single[1], _shown(_value(single[2]))
        elif several := re.fullmatch(r"\((.+)\),", line):
            listed.append([_shown(_value(one)) for one in several[1].split(", ")])
            list_of = group
    if listed:
        names = _found(r"let point = \|\(([\w, ]+?)\)\|", source)[1].split(", ")
        for name, values in zip(names, zip(*listed, strict=True), strict=True):
            yield list_of + name, ", ".join(values)


def _bounds(source: str) -> Iterator[tuple[str, Bounds]]:
    """The ranges by name, those of a group by the name in it."""
    for kind, *names, first, second in _BOUNDS.findall(source):
        if kind == "within":
            yield "".join(names), Bounds(_value(first), _value(second))
        else:
            yield "".join(names), Bounds(None, _value(first))


def _found(pattern: str, source: str) -> re.Match[str]:
    """The first place of a pattern. Raises ValueError where the source has become another, which this cannot read."""
    if (found := re.search(pattern, source, re.MULTILINE | re.DOTALL)) is None:
        raise ValueError(f"no {pattern} in the source of a scheduler: make this tool read what it has now")
    return found


def _value(written: str) -> float | str:
    """A number of Rust; the name of a parameter, or none."""
    plain = written.replace("_", "") if written[0].isdigit() else written
    if plain.startswith("self."):
        return plain.removeprefix("self.")
    if plain == "None":
        return "none"
    base, shifted, by = plain.partition("<<")
    return float(int(base) << int(by)) if shifted else float(plain)


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value if value == "none" else f"`{value}`"
    return (
        str(int(value)) if value == int(value) and value < 1e9 else f"{value:g}".replace("e+0", "e").replace("e+", "e")
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
