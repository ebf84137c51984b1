"""Run as a program, a command by the forks whose socket the first argument is: it ends as the command does.

It has this program's streams, folder and environment. Python starts it in a moment, for it loads next to nothing.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> int:
    orders = socket.socket(fileno=int(sys.argv[1]))
    readable, writable = os.pipe()
    here = os.getcwd()  # noqa: PTH109 - pathlib takes as long to load as all else
    order = {"arguments": sys.argv[2:], "directory": here, "environment": dict(os.environ)}
    socket.send_fds(orders, [json.dumps(order).encode()], [0, 1, 2, writable])
    os.close(writable)
    with os.fdopen(readable) as told:
        _, status = map(int, told)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
