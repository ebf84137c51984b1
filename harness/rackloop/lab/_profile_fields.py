"""Field types of a drive's profile and of how a simulated one takes its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ValidationInfo

from rackloop.errors import BadInput, DescriptionError
from rackloop.lab._profiles import load_profile, profile_names
from rackloop.lab.yaml import SUFFIXES, Scalar, text_of, wrong
from rackloop.names import guess, kind_of

_WAYS = ("model", "ideal")


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
