"""Typed reading of fields of the JSON that tools print, with uniform error messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rackloop.errors import UnknownFormat


class Fields:
    """A JSON object that ``tool`` printed at ``where``, such as ``srv1:/dev/sda``. Raises UnknownFormat if it is none.

    ``version`` is the tool's own, as far as it is known.
    """

    def __init__(self, tool: str, where: str, raw: str, version: str = "") -> None:
        self.tool = tool
        self.where = where
        self.raw = raw
        self.version = version
        try:
            data = json.loads(raw)
        except ValueError as error:
            raise self.unknown(f"no JSON ({error})") from error
        if not isinstance(data, dict):
            raise self.unknown(f"JSON that is no object but a {type(data).__name__}")
        self.data: Mapping[str, Any] = data

    def text(self, key: str) -> str:
        """A field that must be there, as text without padding."""
        value = self._required(key)
        if not isinstance(value, str | int):
            raise self.unknown(f"{key} with the value {value!r}, which is no text")
        return str(value).strip()

    def number(self, key: str) -> int:
        """A field that must be there and hold a whole number; large ones are printed as text."""
        try:
            return int(self._required(key))
        except (OverflowError, TypeError, ValueError) as error:
            raise self.unknown(f"{key} with the value {self.data[key]!r}, which is no whole number") from error

    def at(self, *keys: str) -> Any:
        """The value found along ``keys``, None where they lead nowhere."""
        found: Any = self.data
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def unknown(self, found: str) -> UnknownFormat:
        """The error that says what was found instead of what is known."""
        known = KNOWN[self.tool]
        version = f" {self.version}" if self.version else ""
        return UnknownFormat(
            f"{self.where}: {self.tool}{version} printed {found}; known here: {known}. Install a known version there, "
            "or report what it printed",
            tool=self.tool,
            raw=self.raw,
        )

    def _required(self, key: str) -> Any:
        if key not in self.data:
            raise self.unknown(f"JSON without {key}")
        return self.data[key]


KNOWN = {
    "lsblk": "the fields of util-linux 2.38",
    "nvme": "the fields of nvme-cli 2.3",
    "smartctl": "json_format_version 1.x with the fields of smartmontools 7.3",
}
"""The formats that are known, by tool."""
