"""The names of volumes in a format other than their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop_traces._format import Format

if TYPE_CHECKING:
    import polars

_NUMBER = re.compile(r"[0-9]{1,15}")


class VolumeNames:
    """The names of volumes as a format can say them.

    A format that numbers its volumes keeps numbers; if the first frame has another name, all are numbered from 0 in the
    order in which they come.
    """

    def __init__(self, form: Format) -> None:
        self._form = form
        self._name = re.compile(rf"[^\s{form.separator}]{{1,255}}")
        self._renames: bool | None = None
        self.seen: dict[str, None] = {}
        self.renamed: dict[str, str] = {}

    def fitted(self, frame: polars.DataFrame) -> tuple[polars.DataFrame, list[str]]:
        """``frame`` with the format's names, and the volumes that come for the first time.

        Raises BadInput where a name cannot be written.
        """
        names = frame["volume"].unique(maintain_order=True).to_list()
        if self._renames is None:
            self._renames = self._form.numbers_volumes and not all(map(_NUMBER.fullmatch, names))
        fresh = [name for name in names if name not in self.seen]
        self.seen |= dict.fromkeys(fresh)
        allowed = _NUMBER if self._form.numbers_volumes and not self._renames else self._name
        if wrong := next((name for name in fresh if not allowed.fullmatch(name)), None):
            raise BadInput(f"volume {wrong!r} cannot be written as {self._form.title}: choose another format")
        if not self._renames:
            return frame, fresh
        self.renamed |= {name: str(len(self.renamed) + nth) for nth, name in enumerate(fresh)}
        return frame.with_columns(frame["volume"].replace_strict(self.renamed)), fresh
