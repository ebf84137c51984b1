"""JSON as nvme-cli prints it: no space after a colon, an empty list on two lines."""

from __future__ import annotations

import json
from typing import Any


def nvme_json(document: Any) -> str:
    """The document and a newline."""
    return _lines(document, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    inner = indent + "  "
    match value:
        case dict():
            parts = [f"{inner}{json.dumps(key)}:{_lines(child, inner)}" for key, child in value.items()]
            brackets = "{}"
        case list():
            parts = [inner + _lines(child, inner) for child in value]
            brackets = "[]"
        case _:
            return json.dumps(value, ensure_ascii=False)
    return "\n".join([brackets[0], *([",\n".join(parts)] if parts else []), indent + brackets[1]])
