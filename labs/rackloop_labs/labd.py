"""labd, the process that is a mock lab while it is up: it owns rackd and every simulated box.

Started by :mod:`rackloop_labs.mock`, never imported. It holds the lab's lock for as long as it lives, writes the
endpoints once everything answers, and leaves no process and no socket behind when it is told to end. Killed, it
takes rackd and the switch with it (rackd watches its parent, the switch the pipe to it), and the next ``up`` clears
the rest away.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from rackloop.clock import RealClock
from rackloop.errors import LabError
from rackloop.lab import Lab, LabState
from rackloop_drivers.boxes import FabricDriver, SimulatedSwitch
from rackloop_drivers.rackd import RackdLink
from rackloop_labs._fixed_cabling import numbered
from rackloop_labs._lab_main import run_lab, told_to_end
from rackloop_labs._rackd_config import CONTROL_SOCKET, NBD_SOCKET, SAVED_MAP, TRUTH_LOG, rackd_config
from rackloop_labs._rackd_process import start_rackd, stop_process, write_whole
from rackloop_labs.described import description_digest
from rackloop_labs.labd_control import LABD_SOCKET
from rackloop_labs.mock_faults.ledger import FaultLedger, bad_request
from rackloop_labs.mock_faults.parts import faulty_parts
from rackloop_labs.mock_hosts import EVENTS, LineServer, Reply
from rackloop_labs.mock_hosts.hosts import MockServers, mock_hosts
from rackloop_labs.mock_hosts.hosts import clear as clear_hosts
from rackloop_labs.power_peers import PowerPeers, power_peers

_LEFT_BEHIND = (CONTROL_SOCKET, NBD_SOCKET, TRUTH_LOG, SAVED_MAP, "rackd.json")


def main() -> None:
    """Run the lab named on the command line until it is told to end; what goes wrong is said on standard error."""
    run_lab(_live, "labd", "The process behind a mock lab.")


async def _live(described: Lab, state: LabState, options: argparse.Namespace) -> None:
    # rackd always has a switch; one that joins fixed cables is told nothing and shown to nobody.
    lab = numbered(described)
    _clear(state)
    told = told_to_end(options)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(_clear, state)
        switch = await FabricDriver.of(described.fabric).simulated(state) if described.has_switch else None
        if switch is not None:
            stack.push_async_callback(switch.stop)
        rackd = await start_rackd(rackd_config(lab, str(state.directory), options.seed), state)
        stack.push_async_callback(stop_process, rackd)
        link = await RackdLink.connect(state.directory / CONTROL_SOCKET, follows=EVENTS)
        stack.callback(link.close)
        clock = RealClock()
        power = await stack.enter_async_context(power_peers(lab, link, state.directory, clock))
        servers = await stack.enter_async_context(mock_hosts(lab, link, state.directory, clock, power.lines))
        for name, host in servers.items():
            power.chassis[name].on_interrupt = host.interrupt
        answers = _answers(lab, switch, link, servers, power)
        control = await LineServer.at(state.directory / LABD_SOCKET, answers, bad_request)
        stack.callback(control.close)
        lines = None if switch is None else await switch.open(state.directory / CONTROL_SOCKET)
        endpoints = _endpoints(lab, state, lines, servers, power)
        write_whole(state.endpoints_file, json.dumps(endpoints, indent=2))
        stack.callback(state.endpoints_file.unlink, missing_ok=True)
        os.write(options.ready_fd, b"up\n")
        os.close(options.ready_fd)
        parts = {"rackd": rackd} if switch is None else {"rackd": rackd, "the switch": switch.process}
        waits = [asyncio.create_task(part.wait()) for part in parts.values()]
        waits.append(asyncio.create_task(told.wait()))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not told.is_set():
            ended = " and ".join(
                f"{name} with status {part.returncode}" for name, part in parts.items() if part.returncode is not None
            )
            raise LabError(f"ended by itself: {ended}; see {state.log}")


def _answers(
    lab: Lab, switch: SimulatedSwitch | None, link: RackdLink, servers: MockServers, power: PowerPeers
) -> Reply:
    """Answer a request to the control socket: of the servers' states, and of what is broken on purpose."""
    ledger = FaultLedger(faulty_parts(lab, switch, link, servers, power))

    async def answer(request: dict[str, Any]) -> dict[str, Any]:
        op = request.get("op")
        if not isinstance(op, str):
            return bad_request("the request has no op that is a text")
        return await (ledger.answer if op in ledger.ops else servers.answer)(request)

    return answer


def _endpoints(
    lab: Lab, state: LabState, switch: Mapping[str, Any] | None, servers: MockServers, power: PowerPeers
) -> dict[str, Any]:
    """The address of everything, in the shape that ``lab status --json`` prints."""
    addresses = servers.addresses()
    return {
        "lab": lab.name,
        "kind": lab.kind,
        "pid": os.getpid(),
        "source": str(lab.source),
        "description": description_digest(lab),
        "switch": switch,
        "nbd": str(state.directory / NBD_SOCKET),
        "control": str(state.directory / CONTROL_SOCKET),
        "servers": {
            name: {
                "ssh": addresses[name],
                "ports": {
                    port_name: {"export": f"{name}.{port_name}", "drive": lab.baseline.get(name, {}).get(port_name)}
                    for port_name in server.ports
                },
                "bmc": power.bmc.get(name),
                "console": power.consoles.get(name),
            }
            for name, server in lab.servers.items()
        },
        "drives": {
            name: {
                "serial": drive.serial,
                "wwn": drive.wwn,
                "protocol": drive.traits.protocol,
                "bytes": drive.size,
                "port": lab.where_is(name),
            }
            for name, drive in lab.drives.items()
        },
        "pdu": power.pdu or None,
        "phy": power.phy or None,
        "ssh": servers.login,
    }


def _clear(state: LabState) -> None:
    state.endpoints_file.unlink(missing_ok=True)
    for name in _LEFT_BEHIND:
        (state.directory / name).unlink(missing_ok=True)
    clear_hosts(state.directory)


if __name__ == "__main__":
    main()
