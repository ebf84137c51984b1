"""Keys typed on a terminal, and the escapes among them, as those of ssh."""

from __future__ import annotations

from enum import Enum, auto

HELP = (
    "escapes, at the beginning of a line:",
    "  ~.  leave the console",
    "  ~?  this list",
    "  ~~  the character ~ itself",
)

_ESCAPE = ord("~")
_LINE_ENDS = frozenset(b"\r\n")


class Command(Enum):
    """Something that is typed for the program and not for the server."""

    LEAVE = auto()
    HELP = auto()


class KeyFilter:
    """Parts what is typed into what is for the server and what is for the program."""

    def __init__(self) -> None:
        self._is_line_start = True
        self._is_escaped = False

    def feed(self, typed: bytes) -> tuple[bytes, list[Command]]:
        """The part of ``typed`` that is to be sent, and the commands in it, up to the one to leave."""
        sent, commands = bytearray(), list[Command]()
        for byte in typed:
            if self._is_escaped:
                self._is_escaped = False
                if byte == ord("."):
                    return bytes(sent), [*commands, Command.LEAVE]
                if byte == ord("?"):
                    commands.append(Command.HELP)
                    continue
                # Twice is the character itself; before anything else it was no escape.
                sent += b"~" if byte == _ESCAPE else bytes([_ESCAPE, byte])
            elif byte == _ESCAPE and self._is_line_start:
                self._is_escaped = True
                continue
            else:
                sent.append(byte)
            self._is_line_start = byte in _LINE_ENDS
        return bytes(sent), commands
