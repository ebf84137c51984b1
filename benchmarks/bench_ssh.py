"""What a command by SSH costs: SshHost against OpenSSH's own client over a ControlMaster, in the same run.

16 servers, each an OpenSSH sshd of its own on the loopback, each reached by one connection of SshHost and by one
ControlMaster, all of them up before the measurement. A round deals 1,000 commands (`true`) over the servers in turn,
once by SshHost and once by `ssh -S`: one after the other (the cost of a command), then 16 threads at once (the cost
where a rack is asked). Prints milliseconds a command and the ratio, the median over the rounds with lowest and highest;
exits 1 where a ratio is above its target.

    python benchmarks/bench_ssh.py [--rounds 5] [--commands 1000] [--servers 16]
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._bench import paired
from rackloop.clock import Deadline, RealClock
from rackloop_drivers.host import SshHost
from tests.sshd_process import Sshd, running_sshd

CLOCK = RealClock()
TARGET = 1.5
WITHIN_S = 600.0

Command = Callable[[], None]


def by_harness(stack: contextlib.ExitStack, sshd: Sshd, deadline: Deadline) -> Command:
    host = stack.enter_context(SshHost(sshd.access(), CLOCK))

    def run() -> None:
        assert host.run(("true",), deadline).status == 0

    return run


def by_openssh(stack: contextlib.ExitStack, sshd: Sshd) -> Command:
    shared = ("-F", "none", "-S", str(sshd.folder / "master"), "-p", str(sshd.port))
    login = ("-i", str(sshd.key_file), "-o", f"UserKnownHostsFile={sshd.known_hosts}")
    where = f"{sshd.user}@127.0.0.1"
    subprocess.run(("ssh", *shared, *login, "-M", "-N", "-f", where), check=True)
    end = ("ssh", *shared, "-O", "exit", where)
    stack.callback(subprocess.run, end, check=True, stderr=subprocess.DEVNULL)
    argv = ("ssh", *shared, where, "true")

    def run() -> None:
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)

    return run


def one_by_one(commands: Sequence[Command], count: int) -> float:
    """Milliseconds a command, each begun when the one before has ended."""
    began_ns = CLOCK.now_ns()
    for number in range(count):
        commands[number % len(commands)]()
    return (CLOCK.now_ns() - began_ns) / 1e6 / count


def all_at_once(commands: Sequence[Command], count: int) -> float:
    """Milliseconds a command, one running on each server at any time."""

    def work(command: Command) -> None:
        for _ in range(count // len(commands)):
            command()

    began_ns = CLOCK.now_ns()
    with ThreadPoolExecutor(len(commands)) as pool:
        list(pool.map(work, commands))
    return (CLOCK.now_ns() - began_ns) / 1e6 / (count // len(commands) * len(commands))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commands", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=16)
    options = parser.parse_args()
    met = []
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(running_sshd()) for _ in range(options.servers)]
        deadline = Deadline.after(CLOCK, WITHIN_S)
        harness = [by_harness(stack, sshd, deadline) for sshd in servers]
        openssh = [by_openssh(stack, sshd) for sshd in servers]
        for command in (*harness, *openssh):
            command()
        print(f"{options.commands} commands over {options.servers} servers, milliseconds a command")
        for name, measure in (("one by one", one_by_one), ("16 at once", all_at_once)):

            def ours(measure: Callable[[Sequence[Command], int], float] = measure) -> float:
                return measure(harness, options.commands)

            def theirs(measure: Callable[[Sequence[Command], int], float] = measure) -> float:
                return measure(openssh, options.commands)

            found = paired(ours, theirs, options.rounds)
            met.append(found.ratio <= TARGET)
            print(
                f"  {name}: SshHost {found.a:.2f}, ControlMaster {found.b:.2f}, ratio {found.ratio:.2f} "
                f"[{found.ratio_min:.2f} .. {found.ratio_max:.2f}]  at most {TARGET}: {'met' if met[-1] else 'missed'}"
            )
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
