"""How long a question to the switch takes: the driver against a raw echo and against PyVISA, on the same wires.

Every far end runs in a process of its own, as a switch does, and on another CPU than the asking process, as two boxes
have: left to itself the scheduler puts a pair on one CPU or on two from one round to the next, and a raw echo takes
19 us on one and 40 to 58 us on two. ``--share-cpu`` has all of them on one. The arms are interleaved in one run, so
that what else the machine does hits them alike. Prints microseconds and ratios as the median over rounds with the
lowest and highest; exits 1 where one misses its target.

    python benchmarks/bench_switch.py [--rounds 30] [--calls 200] [--share-cpu]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pty
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rackloop.clock import Deadline, RealClock
from rackloop.native import find_binary
from rackloop.portmap import Full, PortMap
from rackloop_drivers.fabric.flexfabric import FlexFabric, MemoryMatrix, RackdMatrix, SwitchPeer, open_flexfabric

CLOCK = RealClock()
QUESTION = b"*ESE 123;*ESE?;:ROUT:GEN?\n"
ANSWER = b"123;1\n"
WHOLE_MAPS = (
    PortMap.of((port, port + 80) for port in range(1, 81)),
    PortMap.of((port, 161 - port) for port in range(1, 81)),
)


class Echo(asyncio.Protocol):
    """Answers as many bytes as the switch does, and thinks about nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, _data: bytes) -> None:
        self.transport.write(ANSWER)


async def serve(kind: str, control: str | None) -> None:
    """The far end, in its own process: say where it listens, then answer for ever."""
    loop = asyncio.get_running_loop()
    if kind == "echo":
        server = await loop.create_server(Echo, "127.0.0.1", 0)
        where = {"tcp": server.sockets[0].getsockname()[1]}
        master, slave = pty.openpty()
        tty.setraw(slave)
        where["tty"] = os.ttyname(slave)

        def echo() -> None:
            os.read(master, 65536)
            os.write(master, ANSWER)

        loop.add_reader(master, echo)
    else:
        matrix = MemoryMatrix(CLOCK) if control is None else await RackdMatrix.connect(Path(control))
        peer = SwitchPeer(matrix)
        where = {
            "tcp": (await peer.serve_tcp())[1],
            "tty": peer.serve_pty(is_paced=False),
            "paced": peer.serve_pty(is_paced=True),
        }
    print(json.dumps(where), flush=True)
    await asyncio.Event().wait()


@contextlib.contextmanager
def far_end(kind: str, control: Path | None = None) -> Iterator[dict[str, str]]:
    command = [sys.executable, __file__, "--serve", kind, *(["--control", str(control)] if control else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@contextlib.contextmanager
def rackd() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        config = {
            "schema": 1,
            "seed": 1,
            "state_dir": directory,
            "control": "control.sock",
            "nbd": "nbd.sock",
            "truth_log": "truth.jsonl",
            "ports": 160,
            "servers": {"srv1": {"stack": "comreset", "ports": {"p0": 1}}},
            "drives": [
                {"id": "d1", "model": "M", "serial": "S", "firmware": "1", "protocol": "sata", "port": 101}
                | {"bytes": 1 << 20}
            ],
        }
        path = Path(directory, "rackd.json")
        path.write_text(json.dumps(config))
        command = [str(find_binary("rackd")), "--config", str(path), "--exit-with-parent"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline(), "rackd did not start"
                yield Path(directory, "control.sock")
            finally:
                process.terminate()


@dataclass
class Arm:
    """One way to ask; ``samples_us`` are the medians of the rounds."""

    name: str
    ask: Callable[[], object]
    calls: int
    samples_us: list[float]

    def round(self) -> None:
        times = []
        for _ in range(self.calls):
            began = CLOCK.now_ns()
            self.ask()
            times.append((CLOCK.now_ns() - began) / 1e3)
        self.samples_us.append(statistics.median(times))


def raw_tcp(stack: contextlib.ExitStack, port: str) -> Callable[[], object]:
    sock = stack.enter_context(socket.create_connection(("127.0.0.1", int(port))))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask() -> None:
        sock.sendall(QUESTION)
        assert sock.recv(4096) == ANSWER

    return ask


def raw_tty(stack: contextlib.ExitStack, path: str) -> Callable[[], object]:
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
    stack.callback(os.close, descriptor)

    def ask() -> None:
        os.write(descriptor, QUESTION)
        select.select([descriptor], [], [])
        assert os.read(descriptor, 4096) == ANSWER

    return ask


def pyvisa_query(stack: contextlib.ExitStack, port: str) -> Callable[[], object]:
    import pyvisa

    manager = pyvisa.ResourceManager("@py")
    stack.callback(manager.close)
    box = manager.open_resource(f"TCPIP::127.0.0.1::{port}::SOCKET")
    assert isinstance(box, pyvisa.resources.MessageBasedResource)
    stack.callback(box.close)
    box.read_termination = box.write_termination = "\n"
    return lambda: box.query("ROUT:GEN?")


def driver(stack: contextlib.ExitStack, url: str) -> FlexFabric:
    session = open_flexfabric(url, CLOCK, Deadline.after(CLOCK, 20), answer_within_s=5)
    stack.callback(session.close)
    return FlexFabric(session)


def ask_generation(fabric: FlexFabric) -> Callable[[], object]:
    deadline = Deadline.after(CLOCK, 3600)
    return lambda: fabric.generation(deadline)


def remap(fabric: FlexFabric) -> Callable[[], object]:
    maps = iter(WHOLE_MAPS * 1_000_000)
    return lambda: fabric.apply(Full(next(maps)), Deadline.after(CLOCK, 5))


def summary(values: list[float]) -> str:
    return f"{statistics.median(values):10.2f}  [{min(values):.2f} .. {max(values):.2f}]"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--share-cpu", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--control", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve, options.control))
        return 0
    cpus = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        behind = stack.enter_context(rackd())
        os.sched_setaffinity(0, cpus[:1])
        echo = stack.enter_context(far_end("echo"))
        switch = stack.enter_context(far_end("switch"))
        racked = stack.enter_context(far_end("switch", behind))
        os.sched_setaffinity(0, cpus[:1] if options.share_cpu else cpus[-1:])
        arms = [
            Arm("raw echo, TCP", raw_tcp(stack, echo["tcp"]), options.calls, []),
            Arm("driver, TCP", ask_generation(driver(stack, f"tcp://127.0.0.1:{switch['tcp']}")), options.calls, []),
            Arm("PyVISA-py, TCP", pyvisa_query(stack, switch["tcp"]), options.calls, []),
            Arm(
                "driver, TCP, rackd behind",
                ask_generation(driver(stack, f"tcp://127.0.0.1:{racked['tcp']}")),
                options.calls,
                [],
            ),
            Arm("raw echo, pty", raw_tty(stack, echo["tty"]), options.calls, []),
            Arm("driver, pty", ask_generation(driver(stack, switch["tty"])), options.calls, []),
            Arm("driver, pty at 115200", ask_generation(driver(stack, switch["paced"])), 5, []),
            Arm("80 pairs, memory", remap(driver(stack, f"tcp://127.0.0.1:{switch['tcp']}")), 10, []),
            Arm("80 pairs, rackd", remap(driver(stack, f"tcp://127.0.0.1:{racked['tcp']}")), 10, []),
        ]
        for arm in arms:
            arm.round()
            arm.samples_us.clear()
        for number in range(options.rounds):
            for arm in arms if number % 2 else reversed(arms):
                arm.round()
    by_name = {arm.name: arm.samples_us for arm in arms}
    print(f"median of {options.rounds} rounds [lowest .. highest], microseconds a call")
    for name, samples in by_name.items():
        print(f"  {name:28}{summary(samples)}")
    print("ratios, round by round")
    met = []
    for above, below, target in (
        ("driver, TCP", "raw echo, TCP", 1.25),
        ("driver, pty", "raw echo, pty", 1.25),
        ("driver, TCP", "PyVISA-py, TCP", 1.1),
    ):
        ratios = [a / b for a, b in zip(by_name[above], by_name[below], strict=True)]
        met.append(statistics.median(ratios) <= target)
        print(f"  {above} / {below:18}{summary(ratios)}  at most {target}: {'met' if met[-1] else 'missed'}")
    whole_ms = statistics.median(by_name["80 pairs, rackd"]) / 1e3
    met.append(whole_ms <= 5)
    print(
        f"  80 pairs staged, read back, triggered, with rackd: {whole_ms:.2f} ms  at most 5: "
        f"{'met' if met[-1] else 'missed'}"
    )
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
