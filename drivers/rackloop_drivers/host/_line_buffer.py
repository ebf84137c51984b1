"""Output that comes in pieces and is read in lines."""

from __future__ import annotations


class LineBuffer:
    """Bytes that arrive in chunks and leave as lines, or all at once."""

    def __init__(self) -> None:
        self.is_complete = False
        self._data = bytearray()
        self._scanned = 0

    def feed(self, chunk: bytes) -> None:
        """Take a chunk; an empty one is the end of the stream."""
        self._data += chunk
        self.is_complete = not chunk

    def pop(self) -> str | None:
        """The next whole line, or what is left when no more will come; None when there is neither."""
        end = self._data.find(b"\n", self._scanned)
        if end < 0:
            self._scanned = len(self._data)
            return self.rest() if self.is_complete and self._data else None
        line = self._data[:end].decode(errors="replace")
        del self._data[: end + 1]
        self._scanned = 0
        return line

    def rest(self) -> str:
        """Everything that has not been popped."""
        return self.rest_bytes().decode(errors="replace")

    def rest_bytes(self) -> bytes:
        """Everything that has not been popped, as it came."""
        data = bytes(self._data)
        self._data.clear()
        self._scanned = 0
        return data
