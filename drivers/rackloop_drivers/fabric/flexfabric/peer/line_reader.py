"""Bytes to lines: the switch's input buffer, which holds one line of at most 64 KiB."""

from __future__ import annotations

LONGEST_LINE = 64 * 1024


class LineReader:
    """Cuts a stream of bytes at LF, drops a CR before it, and gives up on a line that is too long.

    ``None`` among the lines stands for a line that was longer than :data:`LONGEST_LINE`; reading goes on after its LF.
    """

    def __init__(self) -> None:
        self._partial = b""
        self._is_skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that ``data`` completes."""
        *ended, rest = data.split(b"\n")
        lines: list[bytes | None] = []
        for piece in ended:
            lines.extend(self._grow(piece))
            if not self._is_skipping:
                lines.append(self._partial.removesuffix(b"\r"))
            self._partial = b""
            self._is_skipping = False
        lines.extend(self._grow(rest))
        return lines

    def _grow(self, piece: bytes) -> list[bytes | None]:
        if self._is_skipping:
            return []
        if len(self._partial) + len(piece) > LONGEST_LINE:
            self._partial = b""
            self._is_skipping = True
            return [None]
        self._partial += piece
        return []
