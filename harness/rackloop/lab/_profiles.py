"""Drive profiles: what all drives of a kind have in common, and how a simulated one takes its time.

One YAML file a kind, with the source of every parameter; those shipped lie in ``labs/profiles/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

from rackloop.data import data_path
from rackloop.drive_identifiers import IDENTIFIERS
from rackloop.errors import BadInput, DescriptionError
from rackloop.lab.yaml import (
    SUFFIXES,
    TEXT,
    Description,
    Examined,
    Flag,
    Plain,
    Scalar,
    Size,
    Text,
    compose_file,
    examine,
    find_description,
    matching,
    one_of,
    text_of,
    whole,
    wrong,
)
from rackloop.names import guess, kind_of
from rackloop.units import INTEGER, NUMBER, parse_quantity

_WAYS = ("model", "ideal")
_WORDS = {"true": True, "false": False}
_UNITS = {"seek": "s", "rotation": "s", "sequential": "B/s"}
_KINDS: dict[type, str] = {
    float: "a number",
    bool: "true or false",
    str: "a word",
    list: "a list",
    dict: "a group of parameters",
}


def _unit_of(figure: str) -> str:
    if figure.endswith(".bandwidth"):
        return "B/s"
    return "s" if ".latency." in figure else _UNITS.get(figure.partition(".")[0], "1")


def _value(text: str, info: ValidationInfo) -> float:
    # Of a figure that has a problem of its own the unit is not known.
    return parse_quantity(text, _unit_of(info.data["figure"])) if "figure" in info.data else 0.0


def _ratio(text: str) -> float:
    return parse_quantity(text, "1")


def _parameter(value: Plain) -> Any:
    """A timing parameter from its text: a number, true or false, else the text; lists and groups by their parts."""
    match value:
        case dict():
            return {key: _parameter(part) for key, part in value.items()}
        case list():
            return [_parameter(part) for part in value]
        case str() if INTEGER.fullmatch(value):
            return int(value)
        case str() if NUMBER.fullmatch(value):
            return float(value)
        case _:
            text = text_of(value, "a number, true, false or a word")
            return _WORDS.get(text, text)


class Published(Description):
    """A figure that was published of the drive that a profile is like, in SI base units."""

    figure: Annotated[str, matching(r"[a-z][A-Za-z0-9]*(?:\.[A-Za-z0-9]+)*", "a figure such as sequential.read.outer")]
    """The figure, such as seek.read.average, sequential.read or randread.iops.depth32.4KiB."""
    value: Annotated[float, TEXT, AfterValidator(_value)]
    """Its value with its unit, such as 8.5 ms, 175 MB/s or 98 k."""
    within: Annotated[float, TEXT, AfterValidator(_ratio)]
    """The tolerance of the model, such as 10%."""
    source: Annotated[str, matching(r"(?s)\S.{0,500}", "a sentence that says where it was published")]
    """The publication that has it."""

    @property
    def unit(self) -> str:
        """The unit of its value."""
        return _unit_of(self.figure)


class Profile(Description):
    """A kind of drive, as its file describes it.

    ``timing`` is what rackd and drivesim take: ``{"kind": "ideal" | "hdd" | "ssd", ...parameters}``.
    """

    name: Annotated[
        str,
        Field(alias="profile"),
        matching(r"[a-z][a-z0-9-]{0,31}", "a name of small letters, digits and '-', such as sata-hdd"),
    ]
    """The profile's name; the file has the same."""
    protocol: Annotated[str, one_of(("sata", "sas", "nvme"))]
    """The drive's protocol: sata, sas or nvme."""
    model: Text
    """The model that a simulated drive reports."""
    firmware: Text
    """The firmware revision that a simulated drive reports."""
    sector_bytes: Annotated[int, whole(512, 65536)]
    """The logical sector, such as 512 or 4096."""
    is_rotational: Annotated[Flag, Field(alias="rotational")]
    """True for a hard disk, which has platters."""
    identifiers: tuple[Annotated[str, one_of(IDENTIFIERS)], ...]
    """The identifiers such a drive reports besides its serial, the usual one first; [] where it reports none."""
    like: Text
    """The published drive whose figures these are."""
    capacity_bytes: Annotated[Size, Field(alias="capacity")]
    """The capacity of that drive; a simulated one of another size has its mechanics or flash scaled."""
    sources: tuple[Annotated[str, matching(r"(?s)\S.{0,500}", "a document and where in it")], ...] = ()
    """The documents the parameters come from."""
    timing: Annotated[Mapping[str, Annotated[Any, AfterValidator(_parameter)]], Field(min_length=1)]
    """The timing model, by kind (ideal, hdd or ssd), and its parameters."""
    published: tuple[Published, ...] = ()
    """The published figures that the model is held against."""

    def with_parameters(self, changes: Mapping[str, Any]) -> Profile:
        """The profile with other values of some of its timing parameters, as a description writes them.

        Raises BadInput for a parameter it does not have, and for a value of another kind than its own.
        """
        changed: dict[str, Any] = {}
        for name, written in changes.items():
            if name not in self.timing:
                raise BadInput(f"the profile {self.name} has no parameter {name!r}; {guess(name, self.timing)}")
            value, own = _parameter(written), self.timing[name]
            if _kind(value) is not _kind(own):
                raise BadInput(f"{name}: expected {_KINDS[_kind(own)]} such as {own}, found {written!r}")
            changed[name] = value
        return self.retimed(changed)

    def retimed(self, changes: Mapping[str, Any]) -> Profile:
        """The profile with these parameters of its timing model, as rackd takes them, in place of its own."""
        return self.model_copy(update={"timing": {**self.timing, **changes}})


def _kind(value: object) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


@cache
def profile_names() -> tuple[str, ...]:
    """The profiles that are shipped, in order. Looked for once."""
    return tuple(sorted(path.stem for path in _folder().iterdir() if path.suffix in SUFFIXES))


@cache
def load_profile(path_or_name: str | Path) -> Profile:
    """The profile in a file, or the one shipped under a name such as ``sata-hdd``. Read once.

    Raises BadInput where there is no such file or profile, DescriptionError with every problem the file has.
    """
    path = find_description(path_or_name, "drive profile", (_folder(),))
    examined = examine(compose_file(path), Profile)
    # Those that are shipped are the measure themselves.
    if path.parent != _folder() and examined.value is not None and examined.is_sound("timing"):
        _check_timing(examined, examined.value.timing)
    return examined.finish()


def _check_timing(examined: Examined[Profile], timing: Mapping[str, Any]) -> None:
    """Report parameters that no shipped profile with this timing model has, or has as another kind of value."""
    shipped = [load_profile(name).timing for name in profile_names()]
    kinds = {"ideal": {"kind": "ideal"}} | {one["kind"]: one for one in shipped}
    if (kind := timing.get("kind")) not in kinds:
        message = f"expected a timing model, found {kind_of(kind)}; {guess(str(kind), kinds)}"
        examined.report(("timing", "kind"), message)
        return
    alike = [one for one in (*shipped, kinds["ideal"]) if one["kind"] == kind]
    known = {name: value for one in alike for name, value in one.items()}
    for name, value in timing.items():
        if name not in known:
            examined.report(
                ("timing", name), f"a drive of kind {kind} has no parameter {name!r}; {guess(name, known)}", key=True
            )
        elif _kind(value) is not _kind(own := known[name]):
            examined.report(("timing", name), f"expected {_KINDS[_kind(own)]} such as {own}, found {value!r}")
    missing = [name for name in known if name not in timing and all(name in one for one in alike)]
    # What is missing beside an unknown one is most likely that, misspelt.
    if missing and not timing.keys() - known:
        examined.report(("timing",), f"lacks {', '.join(missing)}; take what the profile of a like drive has", key=True)


def _folder() -> Path:
    return data_path("labs") / "profiles"


def _profile(value: object, info: ValidationInfo) -> str:
    """The name of a shipped profile, or the path of a file, which is relative to the description."""
    text = text_of(value, "the name of a drive profile, or its file")
    if not text.endswith(SUFFIXES):
        if text not in profile_names():
            raise wrong(f"{kind_of(text)} is not known here; {guess(text, profile_names())}")
        return text
    try:
        path = (info.context or {})["file"].parent / text
        load_profile(path)
    except DescriptionError as error:
        raise wrong(f"its file has {len(error.problems)} of these: {error.problems[0]}") from None
    except BadInput as error:
        raise wrong(str(error)) from None
    return str(path)


def _timing(value: object, _info: ValidationInfo) -> str | Mapping[str, Any]:
    if isinstance(value, dict) and value:
        return value
    expected = "model, ideal, or parameters such as {rpm: 5400}"
    text = text_of(value, expected)
    if text not in _WAYS:
        raise wrong(f"expected {expected}, found {kind_of(text)}; {guess(text, _WAYS)}")
    return text


_PROFILE_SCHEMA = {"anyOf": [{"enum": list(profile_names())}, {"type": "string", "pattern": r"\.ya?ml$"}]}
_TIMING_SCHEMA = {"anyOf": [{"enum": list(_WAYS)}, {"type": "object", "minProperties": 1}]}

ProfileName = Annotated[str, Scalar(_profile, _PROFILE_SCHEMA)]
Timing = Annotated[str | Mapping[str, Any], Scalar(_timing, _TIMING_SCHEMA)]
