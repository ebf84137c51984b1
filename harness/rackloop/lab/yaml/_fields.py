"""Field types: how the text of a scalar becomes a value, and what an editor may know of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import with_info_plain_validator_function

from rackloop.names import NAME, guess, kind_of
from rackloop.units import parse_quantity, parse_size

SMALLEST_DRIVE_BYTES = 1 << 20
LARGEST_DRIVE_BYTES = 10**15
# Thirty days.
_LONGEST_S = 30 * 86_400.0

_NAME = NAME.pattern
# As long as the largest seed; how large it may be is for the bounds to say.
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})
_HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_NOT_IN_A_PATH = re.compile(r'["\x00-\x1f\x7f-\x9f\u2028\u2029]')
_SEPARATORS = str.maketrans("", "", ":-")


@dataclass(frozen=True, eq=False)
class Scalar:
    """Metadata of an ``Annotated`` type: makes the value from the text as written, and describes it to editors.

    ``parse`` raises what :func:`wrong` gives, or another ValueError that says what is wrong.
    """

    parse: Callable[[object, ValidationInfo], object]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return with_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.schema)


def wrong(message: str) -> PydanticCustomError:
    """The error for a value; ``message`` says what was expected, what was found and what to do."""
    return PydanticCustomError("rackloop", "{message}", {"message": message})


def text_of(value: object, expected: str) -> str:
    """``value``, which must be a text."""
    if not isinstance(value, str):
        raise wrong(f"expected {expected}, found {kind_of(value)}")
    return value


def matching(pattern: str, expected: str, *, may_look_like_a_number: bool = False) -> Scalar:
    """Makes a text of one form."""
    compiled = re.compile(pattern)

    def parse(value: object, _info: ValidationInfo) -> str:
        text = text_of(value, expected)
        if not compiled.fullmatch(text):
            raise wrong(f"expected {expected}, found {kind_of(text)}")
        return text

    # An editor takes an unquoted 00123456 for a number.
    return Scalar(
        parse,
        {"type": ["string", "number"]} if may_look_like_a_number else {"type": "string", "pattern": f"^(?:{pattern})$"},
    )


def whole(lowest: int, highest: int) -> Scalar:
    """Makes an ``int`` between two bounds, both allowed."""
    expected = f"a whole number from {lowest} to {highest}"

    def parse(value: object, _info: ValidationInfo) -> int:
        text = text_of(value, expected)
        if not _WHOLE.fullmatch(text) or not lowest <= int(text) <= highest:
            raise wrong(f"expected {expected}, found {kind_of(text)}")
        return int(text)

    return Scalar(parse, {"type": "integer", "minimum": lowest, "maximum": highest})


def one_of(names: Iterable[str], make: Callable[[str], object] = str) -> Scalar:
    """Makes one of ``names``, given to ``make``: an enumeration's class, or ``str``."""
    known = tuple(str(name) for name in names)

    def parse(value: object, _info: ValidationInfo) -> object:
        text = text_of(value, f"one of {', '.join(known)}")
        if text not in known:
            raise wrong(f"{kind_of(text)} is not known here; {guess(text, known)}")
        return make(text)

    return Scalar(parse, {"enum": list(known)})


def hexadecimal(prefixes: tuple[str, ...], lengths: tuple[int, ...], expected: str, *, other: str = "") -> Scalar:
    """Makes hexadecimal digits in lower case, without a known prefix, ``:`` and ``-``.

    ``other`` is an identifier that is taken for this one, and has 16 or 32 digits where this one has not.
    """

    def parse(value: object, _info: ValidationInfo) -> str:
        text = text_of(value, expected)
        digits = text.lower()
        for prefix in prefixes:
            digits = digits.removeprefix(prefix)
        digits = digits.translate(_SEPARATORS)
        if not re.fullmatch(r"[0-9a-f]+", digits):
            raise wrong(f"expected {expected}, found {kind_of(text)}")
        if other and len(digits) not in lengths and len(digits) in {16, 32}:
            raise wrong(f"{kind_of(text)} has {len(digits)} digits: this looks like an {other}")
        if len(digits) not in lengths:
            raise wrong(f"expected {expected}, found {kind_of(text)}, which has {len(digits)}")
        return digits

    return Scalar(parse, {"type": ["string", "number"]})


def flag(value: object) -> bool:
    """Whether a text says yes."""
    text = text_of(value, "true or false")
    if text.lower() not in _TRUE | _FALSE:
        raise wrong(f"expected true or false, found {kind_of(text)}")
    return text.lower() in _TRUE


def _size(value: object, _info: ValidationInfo) -> int:
    text = text_of(value, "a size such as 8 GiB")
    size = parse_size(text)
    if not SMALLEST_DRIVE_BYTES <= size <= LARGEST_DRIVE_BYTES:
        raise wrong(f"expected a size from 1 MiB to 1 PB, found {kind_of(text)}; check the unit")
    return size


def time_of(expected: str, *examples: str, least_s: float, most_s: float = _LONGEST_S) -> Scalar:
    """Makes seconds of a time with its unit, between two bounds, both allowed."""

    def parse(value: object, _info: ValidationInfo) -> float:
        text = text_of(value, "a time such as 5 s")
        seconds = parse_quantity(text, "s")
        if not least_s <= seconds <= most_s:
            raise wrong(f"expected {expected} such as 5 s, at most {most_s / 3600:.0f} h, found {kind_of(text)}")
        return seconds

    return Scalar(parse, {"type": "string", "examples": [*examples]})


def path_of(value: object, info: ValidationInfo) -> Path:
    """The path that ``value`` names, from the folder of the file that it stands in."""
    text = text_of(value, "a file name")
    # Paths end up in configurations of other programs, where a line's end or a quote would begin another setting.
    if not text or _NOT_IN_A_PATH.search(text):
        raise wrong(f'expected a file name without control characters and ", found {kind_of(text)}')
    description: Path = (info.context or {})["file"]
    try:
        return description.parent / Path(text).expanduser()
    except RuntimeError:
        raise wrong(f"{kind_of(text)} is in the home of an unknown user; write the whole path") from None


def _endpoint(value: object, _info: ValidationInfo) -> str:
    expected = "'host:port' such as 'switch.lab.example:5025', or auto"
    text = text_of(value, expected)
    found = _HOST_PORT.fullmatch(text)
    if text != "auto" and not (found and 0 < int(found[1]) < 65536):
        raise wrong(f"expected {expected}, found {kind_of(text)}")
    return text


def _outlet(value: object, _info: ValidationInfo) -> tuple[str, int]:
    expected = "an outlet such as pdu1/1"
    if not (found := re.fullmatch(rf"({_NAME})/([0-9]{{1,4}})", text_of(value, expected))):
        raise wrong(f"expected {expected}, found {kind_of(value)}")
    return found[1], int(found[2])


def _server_port(value: object, _info: ValidationInfo) -> tuple[str, str]:
    expected = "a server and its port such as srv1/p0"
    if not (found := re.fullmatch(rf"({_NAME})/({_NAME})", text_of(value, expected))):
        raise wrong(f"expected {expected}, found {kind_of(value)}")
    return found[1], found[2]


# libpq knows password, sslpassword and the like, and reads %70assword as the first. A host has no @ behind it.
_PASSWORD_IN_STORE = re.compile(
    r"postgresql://(?:[^:?]*:.*@|[^?]*\?(?:.*&)?[^=&]*(?:password|%)[^=&]*=)", re.IGNORECASE
)


def _store(value: object, _info: ValidationInfo) -> str:
    expected = "'sqlite', or a URL such as postgresql://rackloop@db.lab.example/rackloop"
    text = text_of(value, expected)
    if _PASSWORD_IN_STORE.match(text):  # never quote it: messages end up in logs
        raise wrong("a password must not stand in this file; delete it from the URL and keep it in ~/.pgpass")
    if not re.fullmatch(r"sqlite|postgresql://[\x21-\x7e]{1,512}", text):
        raise wrong(f"expected {expected}, found {kind_of(text)}")
    return text


_PATH_SCHEMA = {"type": "string", "minLength": 1}

_EUI = ("0x", "eui.")

Name = Annotated[str, matching(_NAME, "a name of letters, digits, '_' and '-', a letter first, 32 at most")]
TEXT = matching(
    r"[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?",
    "a text of 1 to 128 printable ASCII characters",
    may_look_like_a_number=True,
)
Text = Annotated[str, TEXT]
User = Annotated[
    str, matching(r"[A-Za-z_][A-Za-z0-9_.@-]{0,63}[$]?", "a user name of letters, digits and '_', '.', '@', '-'")
]
Flag = Annotated[bool, Scalar(lambda value, _info: flag(value), {"type": "boolean"})]
Size = Annotated[int, Scalar(_size, {"type": "string", "examples": ["8 GiB", "1.92 TB"]})]
Seconds = Annotated[float, time_of("a time above zero", "5 s", "10 min", least_s=1e-12)]
Moment = Annotated[float, time_of("a time", "0 s", "1.5 s", least_s=0)]
Wwn = Annotated[str, hexadecimal(("0x", "naa."), (16, 32), "a WWN of 16 hexadecimal digits (32 for NAA 6)")]
Eui64 = Annotated[str, hexadecimal(_EUI, (16,), "an EUI-64 of 16 hexadecimal digits", other="NGUID; give it as nguid:")]
Nguid = Annotated[str, hexadecimal(_EUI, (32,), "an NGUID of 32 hexadecimal digits", other="EUI-64; give it as eui64:")]
Store = Annotated[str, Scalar(_store, {"type": "string", "pattern": "^(sqlite|postgresql://.+)$"})]
File = Annotated[Path, Scalar(path_of, _PATH_SCHEMA)]
Endpoint = Annotated[str, Scalar(_endpoint, {"type": "string", "examples": ["auto", "switch.lab.example:5025"]})]
Outlet = Annotated[tuple[str, int], Scalar(_outlet, {"type": "string", "examples": ["pdu1/1"]})]
ServerPort = Annotated[tuple[str, str], Scalar(_server_port, {"type": "string", "examples": ["srv1/p0"]})]
