"""The process that is a virtual lab while it is up: it owns rackd, the switch and every guest.

Started by :mod:`rackloop_labs.virtual`, never imported. It keeps the rules of :mod:`rackloop_labs.labd`: it holds the
lab's lock for as long as it lives, writes the endpoints once everything answers, and takes rackd and all guests with
it, however it ends.
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
from rackloop.lab import Lab, LabState, Part, PartKind
from rackloop_drivers.fabric.flexfabric import FlexFabricDriver, RackdMatrix, SwitchPeer
from rackloop_drivers.rackd import RackdLink
from rackloop_labs._fixed_cabling import numbered
from rackloop_labs._lab_main import run_lab, told_to_end
from rackloop_labs._rackd_config import CONTROL_SOCKET, NBD_SOCKET, SAVED_MAP, TRUTH_LOG, rackd_config
from rackloop_labs._rackd_process import start_rackd, stop_process, write_whole
from rackloop_labs.described import description_digest
from rackloop_labs.power_peers import PowerPeers, RackdSwitching, power_peers
from rackloop_labs.ssh_access import ssh_accesses
from rackloop_labs.virtual_rack.described_rack import REHEARSAL, rehearsal
from rackloop_labs.virtual_rack.guest_cache import GuestCache, SavedGuest
from rackloop_labs.virtual_rack.guest_drives import PluggedDrive
from rackloop_labs.virtual_rack.guest_power import GuestChassis, GuestSwitching
from rackloop_labs.virtual_rack.guests import USER, Guests, console_log, key_file, known_hosts
from rackloop_labs.virtual_rack.guests import clear as clear_guests
from rackloop_labs.virtual_rack.matrix import PluggingMatrix
from rackloop_labs.virtual_rack.plugs import Plugs, Socket, follow_losses
from rackloop_labs.virtual_rack.port_places import places_of, sata_arguments
from rackloop_labs.virtual_rack.prerequisites import require_memory
from rackloop_labs.virtual_rack.recipe import ACCOUNT
from rackloop_labs.virtual_rack.sata_scan import look_for_drives
from rackloop_labs.virtual_rack.storage_network import StorageNetwork

_TTY, _TOKEN = "switch.tty", "switch.json"
_LEFT_BEHIND = (CONTROL_SOCKET, NBD_SOCKET, TRUTH_LOG, SAVED_MAP, "rackd.json", _TTY, _TOKEN, REHEARSAL)
# What a guest asks of a drive whose circuit has ended fails, and so does what QEMU flushes when the guest lets go.
_LINK_TIMEOUT_MS = 50
# What a drive's coming online takes is the guest's kernel's part; the export answers at once.
_STACK = {"guest": {"online_ms": 0.5, "spread_ms": 0.01, "phy_us": [300, 400]}}


def main() -> None:
    """Run the lab named on the command line until it is told to end; what goes wrong is said on standard error."""
    run_lab(_live, "virtual_labd", "The process behind a virtual lab.")


async def _live(described: Lab, state: LabState, options: argparse.Namespace) -> None:
    # rackd always has a switch; one that joins fixed cables is told nothing and shown to nobody.
    lab = numbered(described)
    _clear(state)
    clock = RealClock()
    saved = GuestCache(clock).require(lab.name)
    require_memory(len(lab.servers), saved.recipe.memory_mib)
    told = told_to_end(options)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(_clear, state)
        rackd = await start_rackd(_rackd_document(lab, state, options.seed), state)
        stack.push_async_callback(stop_process, rackd)
        network = await StorageNetwork.start(state.directory)
        stack.push_async_callback(network.end)
        nbd = state.directory / NBD_SOCKET
        attached = {name: sata_arguments(lab, name, nbd) for name in lab.servers}
        guests = await Guests.load(saved, attached, state)
        stack.push_async_callback(guests.end)
        inner = await RackdMatrix.connect(state.directory / CONTROL_SOCKET)
        stack.push_async_callback(inner.close)
        sockets = _sockets(lab, guests)
        matrix = PluggingMatrix(inner, sockets, _drives(lab), Plugs(nbd))
        if failed := await matrix.catch_up():
            raise failed[0]
        await guests.go(lab.name, saved, state, clock)
        link = await RackdLink.connect(state.directory / CONTROL_SOCKET, follows={"power"})
        stack.callback(link.close)
        link.follow(lambda record: _power_of_drive(lab, matrix, record))
        switching = GuestSwitching(
            RackdSwitching(link), guests.machines, lambda on: matrix.power(on=on), matrix.look_again, matrix.settled
        )
        following = asyncio.gather(matrix.follow(), switching.follow_guests(), follow_losses(sockets, matrix.doubt))
        stack.push_async_callback(_ended, following)

        def chassis(name: str) -> GuestChassis:
            return GuestChassis(name, switching, clock, guests.machines[name])

        peers = power_peers(described, link, state.directory, clock, switching=switching, chassis_of=chassis)
        power = await stack.enter_async_context(peers)
        lines = None
        if described.has_switch:
            switch = SwitchPeer(matrix, state_path=state.directory / _TOKEN)
            stack.push_async_callback(switch.close)
            lines = await _opened(switch, lab, state)
        endpoints = _endpoints(lab, state, saved, guests, lines, power)
        looking = [server for server, drives in attached.items() if drives]
        await asyncio.to_thread(look_for_drives, ssh_accesses(lab, endpoints), looking, clock)
        (state.directory / REHEARSAL).write_text(rehearsal(described, endpoints), encoding="utf-8")
        write_whole(state.endpoints_file, json.dumps(endpoints, indent=2))
        stack.callback(state.endpoints_file.unlink, missing_ok=True)
        os.write(options.ready_fd, b"up\n")
        os.close(options.ready_fd)
        await _until_ended(told, following, {"rackd": rackd, "the storage network": network.process}, guests, state)


async def _until_ended(
    ending: asyncio.Event,
    following: asyncio.Future[Any],
    processes: Mapping[str, asyncio.subprocess.Process],
    guests: Guests,
    state: LabState,
) -> None:
    """Return when the lab is told to end. Raises LabError where a part of it ends by itself."""
    told = asyncio.create_task(ending.wait())
    waits = {name: asyncio.create_task(process.wait()) for name, process in processes.items()}
    guest = asyncio.create_task(guests.ended())
    await asyncio.wait((told, following, guest, *waits.values()), return_when=asyncio.FIRST_COMPLETED)
    if told.done():
        return
    ended = [f"{name} with status {wait.result()}" for name, wait in waits.items() if wait.done()]
    if guest.done():
        ended.append(f"guest {guest.result()}")
    if not ended:
        following.result()
    raise LabError(f"ended by itself: {', '.join(ended)}; see {state.log} and the console logs beside it")


async def _ended(following: asyncio.Future[Any]) -> None:
    """Cancel the task, whose failure was reported already."""
    following.cancel()
    await asyncio.wait((following,))
    if not following.cancelled():
        following.exception()


def _power_of_drive(lab: Lab, matrix: PluggingMatrix, record: dict[str, Any]) -> None:
    """A drive without power is pulled, whatever its guest is about to do with it."""
    if record["event"] == "power" and (part := Part.of_resource(record["target"])).kind is PartKind.DRIVE:
        matrix.power_of(lab.where_is(part.name), on=bool(record["on"]))


async def _opened(switch: SwitchPeer, lab: Lab, state: LabState) -> dict[str, str]:
    """Open the lines of the switch; where they are."""
    assert isinstance(lab.fabric, FlexFabricDriver)  # noqa: S101 - no other is accepted
    control = lab.fabric.control
    wanted = 0 if control.tcp in {None, "auto"} else int(str(control.tcp).rpartition(":")[2])
    host, port = await switch.serve_tcp("127.0.0.1", wanted)
    tty = switch.serve_pty(state.directory / _TTY, baud=control.baud, is_paced=lab.fabric.pace)
    return {"tty": tty, "tcp": f"{host}:{port}"}


def _rackd_document(lab: Lab, state: LabState, seed: int) -> dict[str, Any]:
    document = rackd_config(lab, str(state.directory), seed) | {"stacks": _STACK, "link_timeout_ms": _LINK_TIMEOUT_MS}
    for server in document["servers"].values():
        server["stack"] = "guest"
    return document


def _sockets(lab: Lab, guests: Guests) -> dict[int, Socket]:
    return {
        lab.switch_port(name, port): Socket(guests.machines[name], place.slot, f"{name}.{port}")
        for name in lab.servers
        for port, place in places_of(lab, name).items()
        if place.sata is None
    }


def _drives(lab: Lab) -> dict[int, PluggedDrive]:
    return {
        lab.where_is(name): PluggedDrive.of(name, drive) for name, drive in lab.drives.items() if drive.port is not None
    }


def _endpoints(
    lab: Lab, state: LabState, saved: SavedGuest, guests: Guests, switch: dict[str, str] | None, power: PowerPeers
) -> dict[str, Any]:
    """The address of everything, in the shape that ``lab status --json`` prints."""
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
                "ssh": f"127.0.0.1:{guests.ssh[name]}",
                "clock": f"127.0.0.1:{guests.clocks[name]}",
                "ports": {
                    port: {"export": f"{name}.{port}", "drive": lab.baseline.get(name, {}).get(port)}
                    for port in server.ports
                },
                "paths": {port: place.path(saved.slot_buses) for port, place in places_of(lab, name).items()},
                "storage_address": str(guests.storage[name].address.ip),
                "bmc": power.bmc.get(name),
                "console": {"address": f"127.0.0.1:{guests.consoles[name]}"},
                "console_log": str(console_log(state, name)),
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
        "phy": None,
        "ssh": {
            "user": USER,
            "account": ACCOUNT,
            "key_file": str(key_file(state)),
            "known_hosts": str(known_hosts(state)),
        },
        "rehearsal": str(state.directory / REHEARSAL),
    }


def _clear(state: LabState) -> None:
    state.endpoints_file.unlink(missing_ok=True)
    for name in _LEFT_BEHIND:
        (state.directory / name).unlink(missing_ok=True)
    clear_guests(state)


if __name__ == "__main__":
    main()
