"""The SCPI error numbers with which the switch refuses commands, and the exception that carries one.

Numbers and texts are those of SCPI 1999.0, volume 2, chapter 21.8.
"""

from __future__ import annotations

from dataclasses import dataclass

COMMAND_ERROR = -100
PARAMETER_NOT_ALLOWED = -108
MISSING_PARAMETER = -109
UNDEFINED_HEADER = -113
COMMAND_PROTECTED = -203
TRIGGER_IGNORED = -211
SETTINGS_CONFLICT = -221
OUT_OF_RANGE = -222
ILLEGAL_VALUE = -224
HARDWARE_ERROR = -240
SYSTEM_ERROR = -310
QUEUE_OVERFLOW = -350
BUFFER_OVERRUN = -363

TEXTS = {
    0: "No error",
    COMMAND_ERROR: "Command error",
    PARAMETER_NOT_ALLOWED: "Parameter not allowed",
    MISSING_PARAMETER: "Missing parameter",
    UNDEFINED_HEADER: "Undefined header",
    COMMAND_PROTECTED: "Command protected",
    TRIGGER_IGNORED: "Trigger ignored",
    SETTINGS_CONFLICT: "Settings conflict",
    OUT_OF_RANGE: "Data out of range",
    ILLEGAL_VALUE: "Illegal parameter value",
    HARDWARE_ERROR: "Hardware error",
    SYSTEM_ERROR: "System error",
    QUEUE_OVERFLOW: "Queue overflow",
    BUFFER_OVERRUN: "Input buffer overrun",
}

_DETAIL_LENGTH = 80


@dataclass(frozen=True)
class QueuedError:
    """One answer of ``SYSTem:ERRor?``: number 0 means the queue was empty."""

    number: int
    text: str


class ScpiError(Exception):
    """The switch will not do what a command asks. ``number`` is its SCPI error number."""

    def __init__(self, number: int, detail: str = "") -> None:
        self.number = number
        self.detail = detail
        super().__init__(number, detail)

    def entry(self) -> QueuedError:
        """The entry of the error queue: the standard text, then the detail after a semicolon."""
        text = TEXTS[self.number]
        shown = "".join(c if " " <= c <= "~" and c != '"' else "?" for c in self.detail[:_DETAIL_LENGTH])
        return QueuedError(self.number, f"{text};{shown}" if shown else text)
