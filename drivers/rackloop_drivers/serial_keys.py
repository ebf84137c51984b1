"""Keys of a lab description that are about a serial line of this machine."""

from __future__ import annotations

from typing import Annotated

from rackloop.lab.yaml import Scalar, matching, one_of

__all__ = ["Baud", "SerialDevice"]

# Those that termios has.
_BAUDS = (
    *(300, 600, 1200, 1800, 2400, 4800, 9600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800, 500_000, 576_000),
    *(921_600, 1_000_000, 1_152_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000, 3_500_000, 4_000_000),
)

Baud = Annotated[int, Scalar(one_of(_BAUDS, int).parse, {"enum": [*_BAUDS]})]
SerialDevice = Annotated[str, matching(r"auto|/dev/[\x21-\x7e]{1,120}", "a device such as /dev/ttyUSB0, or auto")]
