"""Recording of what the tools of a guest print of its drives, and what its kernel tells of one that goes and comes.

``python -m tests.transcripts.record_guest`` records on the guest of ``virtual-direct``, which must be up, and names
what has drifted. A recording that differs from the kept one in values alone is left as it is: recording anew changes
nothing else in the repository.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from rackloop.clock import Deadline, RealClock
from rackloop.lab import LabState, load_lab
from rackloop_drivers.host import SshHost
from rackloop_labs.ssh_access import ssh_accesses
from rackloop_labs.uevent_log import SUBSYSTEMS
from tests.transcripts.drift import RECORDED, Recording, answer_drift, recording
from tests.transcripts.guest_commands import COMMANDS, RETURNS

VIRTUAL = RECORDED / "virtual"
LAB, SERVER = "virtual-direct", "node1"
_WITHIN_S = 600.0

# One connection and one interpreter for all: a guest in software takes seconds for each.
_ON_GUEST = """
import json, subprocess, sys
asked = json.loads(sys.argv[1])
done = {}
for name, command in asked["commands"].items():
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    done[name] = [ran.stdout, ran.stderr, ran.returncode]
for name, (go, come) in asked["returns"].items():
    argv = ["stdbuf", "-oL", "udevadm", "monitor", "--kernel", "--udev", "--property"]
    monitor = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    while monitor.stdout.readline().strip():
        pass
    subprocess.run(go, shell=True, check=True)
    subprocess.run(["udevadm", "settle"])
    subprocess.run(come, shell=True, check=True)
    lines = []
    is_udev = is_added = False
    for line in monitor.stdout:
        lines.append(line)
        is_udev = line.startswith("UDEV") if "[" in line else is_udev
        is_added = is_added if line.strip() else False
        is_added = is_added or line.strip() == "ACTION=add"
        if is_udev and is_added and line.strip() == "DEVTYPE=disk":
            break
    subprocess.run(["udevadm", "settle"])
    monitor.terminate()
    done[name] = ["".join(lines) + monitor.communicate()[0], "", 0]
print(json.dumps(done))
"""
_LINKS = re.compile(r"(?<=^DEVLINKS=).*", re.MULTILINE)


def record(state: LabState) -> dict[str, Recording]:
    """Everything, as the guest of the lab that is up answers now."""
    clock = RealClock()
    access = ssh_accesses(load_lab(LAB), state.endpoints())[SERVER]
    asked = json.dumps({"commands": COMMANDS, "returns": RETURNS})
    with closing(SshHost(access, clock)) as host:
        ran = host.run(["python3", "-c", _ON_GUEST, asked], Deadline.after(clock, _WITHIN_S))
    assert ran.status == 0, ran
    answers = json.loads(ran.stdout)
    found = {
        name: Recording(tuple(command.split()), _LINKS.sub(_in_order, stdout), stderr, status)
        for name, command in COMMANDS.items()
        for stdout, stderr, status in [answers[name]]
    }
    for name, commands in RETURNS.items():
        events = json.dumps(events_of(answers[name][0]), indent=1) + "\n"
        found[name] = Recording(tuple("; ".join(commands).split()), events, "", 0)
    return found


def events_of(text: str) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """The variables of each kind of event that ``udevadm monitor`` printed, by who told it: kernel or udev.

    Those of the subsystems that an attach log follows. A kind is its action, subsystem and type; of several of a kind
    the first is taken. In order of names, since the two tellers are not in step.
    """
    found: dict[str, dict[str, dict[str, str]]] = {"kernel": {}, "udev": {}}
    for block in text.split("\n\n"):
        head, *lines = block.strip().splitlines() or [""]
        if not head.startswith(("KERNEL[", "UDEV")):
            continue
        told = dict(line.partition("=")[::2] for line in lines)
        kind = " ".join(told[key] for key in ("ACTION", "SUBSYSTEM", "DEVTYPE") if key in told)
        if told["SUBSYSTEM"] in SUBSYSTEMS:
            found["kernel" if head.startswith("KERNEL") else "udev"].setdefault(kind, dict(sorted(told.items())))
    return {teller: dict(sorted(events.items())) for teller, events in found.items()}


def _in_order(links: re.Match[str]) -> str:
    """The links to a device, which udev has in no order, in that of their names."""
    return " ".join(sorted(links[0].split()))


def drifted(fresh: Mapping[str, Recording], kept: Mapping[str, Recording]) -> dict[str, list[str]]:
    """What of the fresh recordings differs from the kept ones in more than values, by name."""
    found = {}
    for name, now in fresh.items():
        if name not in kept:
            found[name] = ["it was not recorded before"]
        elif findings := answer_drift(kept[name], now.stdout, now.stderr, now.status):
            found[name] = findings
    return found | {name: ["it is recorded no more"] for name in kept if name not in fresh}


def kept_recordings(folder: Path = VIRTUAL) -> dict[str, Recording]:
    """The recordings in a folder, by name."""
    return {path.stem: recording(str(path.with_suffix(""))) for path in sorted(folder.glob("*.cmd"))}


def keep(fresh: Mapping[str, Recording], folder: Path) -> list[str]:
    """Write down what has drifted; the names of it."""
    names = sorted(drifted(fresh, kept_recordings(folder)))
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for suffix in (".cmd", ".out", ".err"):
            (folder / f"{name}{suffix}").unlink(missing_ok=True)
        if (now := fresh.get(name)) is not None:
            (folder / f"{name}.cmd").write_text(" ".join(now.argv) + "\n", encoding="utf-8")
            (folder / f"{name}.out").write_text(now.stdout, encoding="utf-8")
            (folder / f"{name}.err").write_text(f"{now.stderr}rc={now.status}\n", encoding="utf-8")
    return names


def main() -> int:
    """Record, and keep what has drifted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, default=VIRTUAL, help="the folder of the recordings")
    folder = parser.parse_args().into
    state = LabState.of(LAB)
    if not state.is_held():
        sys.stderr.write(f"lab {LAB} is not up: `rackloop lab up {LAB}`\n")
        return 2
    for name in keep(record(state), folder):
        sys.stdout.write(f"{name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
