"""The process that simulates the switch of a mock lab, in front of rackd.

Started by ``process_link`` beside it, never imported. It is a process of its own so that nothing else that labd
simulates keeps a map change waiting. Standard input is its leash: it ends with it, however labd ends. The first line
says where rackd and the switch's lines are; what it is told after that is which lines to mishear.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path
from typing import Any

from rackloop.errors import RackloopError
from rackloop_drivers.fabric.flexfabric.peer.line_faults import LineFault, LineFaultRule
from rackloop_drivers.fabric.flexfabric.peer.precedence import ask_for_precedence
from rackloop_drivers.fabric.flexfabric.peer.rackd_matrix import RackdMatrix
from rackloop_drivers.fabric.flexfabric.peer.switch_peer import SwitchPeer


def main() -> None:
    """Be the switch until standard input ends; what goes wrong is said on standard error."""
    ask_for_precedence()
    try:
        asyncio.run(_live())
    except (RackloopError, OSError) as error:
        sys.exit(f"switch: {error}")


async def _live() -> None:
    told = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(told), sys.stdin)
    first = await told.readline()
    if not first:
        return
    wanted: dict[str, Any] = json.loads(first)
    matrix = await RackdMatrix.connect(Path(wanted["rackd"]))
    peer = SwitchPeer(matrix, state_path=Path(wanted["memory"]))
    try:
        host, port = await peer.serve_tcp("127.0.0.1", wanted["port"])
        tty = peer.serve_pty(Path(wanted["tty"]), baud=wanted["baud"], is_paced=wanted["paced"])
        _say({"tty": tty, "tcp": f"{host}:{port}"})
        # What is here now stays: no collection looks through it while a controller waits.
        gc.freeze()
        await _mishear(peer, told)
    finally:
        await peer.close()
        await matrix.close()


async def _mishear(peer: SwitchPeer, told: asyncio.StreamReader) -> None:
    rules: dict[str, LineFaultRule] = {}
    while line := await told.readline():
        order = json.loads(line)
        if (rule := rules.pop(order["key"], None)) is not None:
            peer.line_faults.remove(rule)
        if (given := order["rule"]) is not None:
            rules[order["key"]] = rule = LineFaultRule(LineFault(given.pop("act")), **given)
            peer.line_faults.install(rule)
        _say({"done": order["key"]})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
