"""The drives of a server, in one command however many there are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from rackloop.abilities import BlockUsage, Executor, Host
from rackloop.abilities.inventory import HostInventory, SeenDrive
from rackloop.clock import Deadline
from rackloop.drive_identifiers import is_on_path
from rackloop.errors import LabError, UnknownFormat
from rackloop.lab import state_root
from rackloop_drivers.host_tools._fields import Fields
from rackloop_drivers.host_tools._lsblk import ListedDisk, parse_lsblk
from rackloop_drivers.host_tools._nvme_cli import parse_nvme
from rackloop_drivers.host_tools._reading import Reading
from rackloop_drivers.host_tools._sections import Section, parse_sections
from rackloop_drivers.host_tools._smartctl import parse_smartctl
from rackloop_drivers.host_tools._sysfs import (
    Places,
    parse_by_path,
    parse_exports,
    parse_loops,
    parse_paths,
    parse_phys,
    parse_values,
)

# A drive that hangs is named as such; the others are read all the same. A tool may take this long, or a quarter of the
# whole where that is longer, as on a slow server of which the lab says so; but so that time is left to name it.
_TOOL_WAIT_S = 10
_DIGEST_DIGITS = 12
# A section comes in many pieces, and each piece that is sent by itself costs both ends as much as all of them together.
_AT_ONCE = """
survey() {{
{script}
}}
exec 3>&1
complaints=$({{ answers=$(survey "$@" 3>&-); status=$?; printf %s "$answers" >&3; exit "$status"; }} 2>&1)
status=$?
printf %s "$complaints" >&2
exit "$status"
"""
_NVME_SECTIONS = ("id-ctrl", "id-ns", "smart-log")
_IDENTITY = "--identity"
_USAGE = "--usage"
_BY_PATH = "/dev/disk/by-path/"


class NoDriveThere(LabError):
    """No drive is at the place that was asked about: nothing is plugged in, or mapped to it."""


def survey_host(executor: Executor, deadline: Deadline) -> HostInventory:
    """Every SCSI, SATA and NVMe drive that the server behind ``executor`` sees, and its SAS PHYs.

    One command reads them all. A drive that cannot be read, does not say who it is, or of which its tool prints an
    unknown format, is in ``unreadable`` with the reason, which names the file that such an output is kept in. Raises
    ToolError where lsblk, or a tool that a drive there needs, is missing, UnknownFormat where lsblk's output is of an
    unknown version, DeadlineExceeded and other LabErrors where the server cannot be asked.
    """
    return Answers(executor, ("survey.sh",), (), deadline).inventory()


def read_drive(executor: Executor, device: str, deadline: Deadline) -> SeenDrive:
    """The drive behind ``device``: a node, a link to it, or the path of a port that has one drive.

    A path is the beginning of names under ``/dev/disk/by-path``, such as ``pci-0000:10:00.0``. Raises
    NoDriveThere where there is no drive, LabError where there is more than one or it cannot be read, UnknownFormat
    where a tool's output is of an unknown version, and what :func:`survey_host` raises.
    """
    return _only_drive(Answers(executor, ("survey.sh",), (device,), deadline), device)


def identify_drive(executor: Executor, device: str, deadline: Deadline) -> SeenDrive:
    """As :func:`read_drive`, by fewer questions: an NVMe drive comes without counters and findings."""
    return _only_drive(Answers(executor, ("survey.sh",), (_IDENTITY, device), deadline), device)


def identify_drives(executor: Executor, devices: Sequence[str], deadline: Deadline) -> list[SeenDrive]:
    """The drives behind ``devices``, each as :func:`identify_drive` has it, by one command.

    Each device is the path of a port or a name under ``/dev/disk/by-path``. Raises as that does, for the first of them.
    """
    answers = Answers(executor, ("survey.sh",), (_IDENTITY, *devices), deadline)
    return [_only_drive(answers, device.removeprefix(_BY_PATH)) for device in devices]


def _only_drive(answers: Answers, device: str) -> SeenDrive:
    names = answers.names()
    if not device.startswith("/"):
        names = [name for name in names if any(is_on_path(path, device) for path in answers.by_paths.get(name, ()))]
    if not names:
        raise NoDriveThere(f"{answers.host}: no drive at {device}; is it plugged in and mapped?")
    if len(names) > 1:
        raise LabError(f"{answers.host}: {len(names)} drives are at {device}: {', '.join(names)}; name one of them")
    return answers.drive(names[0])


def read_drives(executor: Executor, nodes: Sequence[str], deadline: Deadline) -> HostInventory:
    """The drives behind ``nodes``, one at least, and what :func:`survey_host` says of a server besides.

    Raises what that raises.
    """
    if not nodes:
        raise ValueError("no drive was named, which would be all of them")
    return Answers(executor, ("survey.sh",), nodes, deadline).inventory()


def list_disks(executor: Executor, nodes: Sequence[str], deadline: Deadline) -> dict[str, ListedDisk]:
    """The disks at ``nodes``, by these: the use and the serial of each, as the server knows them of itself.

    No drive is asked anything. However many there are it takes a moment, and one that hangs keeps it from nothing. One
    that is gone is left out. Raises LabError where the server cannot be asked, ToolError where lsblk is missing,
    UnknownFormat as :func:`survey_host` does.
    """
    if not nodes:
        raise ValueError("no drive was named, which would be all of them")
    answers = Answers(executor, ("survey.sh",), (_USAGE, *nodes), deadline)
    found = {node: answers.disk(node.removeprefix("/dev/")) for node in nodes}
    return {node: disk for node, disk in found.items() if disk is not None}


@contextmanager
def _keeping_raw_text() -> Iterator[None]:
    """Have what was printed in an unknown format outlive the error, which names the file."""
    try:
        yield
    except UnknownFormat as error:
        kept = _kept(error)
        raise UnknownFormat(f"{error}: {kept}", tool=error.tool, raw=error.raw) from error


def _kept(error: UnknownFormat) -> Path:
    """The file below the state directory that keeps what was printed. Raises LabError where the disk refuses.

    A complaint has one, with what was printed last: a drive is read around every test, and its counters move.
    """
    digest = hashlib.sha256(str(error).encode()).hexdigest()[:_DIGEST_DIGITS]
    place = state_root() / "kept" / f"{error.tool}-{digest}.txt"
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.write_text(error.raw, encoding="utf-8")
    except OSError as refused:
        raise LabError(f"{error}: cannot write {place}: {refused.strerror}; free some space") from refused
    return place


def name_of(executor: Executor) -> str:
    """A name for the place where ``executor`` runs commands: the server's name, if it has one."""
    return executor.name if isinstance(executor, Host) else "this machine"


class Answers:
    """The answers from one run of scripts, ``survey.sh`` the last of them, by what was asked of whom."""

    def __init__(
        self, executor: Executor, scripts: Sequence[str], arguments: Sequence[str], deadline: Deadline
    ) -> None:
        self.host = name_of(executor)
        self._executor = executor
        self._deadline = deadline
        self._of_nvme = _NVME_SECTIONS[: 2 if _IDENTITY in arguments else 3]
        folder = files("rackloop_drivers.host_tools")
        texts = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("sections.sh", *scripts))
        script = _AT_ONCE.format(script="".join(texts))
        all_s = deadline.remaining_s()
        wait_s = int(min(max(_TOOL_WAIT_S, all_s / 4), max(1.0, all_s * 3 / 4)))
        completed = executor.run(["sh", "-c", script, "survey", str(wait_s), *arguments], deadline)
        self._sections = {
            (section.kind, section.subject): section for section in parse_sections(completed.stdout, completed.stderr)
        }
        if completed.status or ("values", "-") not in self._sections:
            _, mark, last = completed.stderr.rpartition("\x1e")
            said = (last.partition("\n")[2] if mark else last).strip() or f"exit status {completed.status}"
            raise LabError(f"{self.host}: the survey of its drives failed: {said}")
        self.by_paths = parse_by_path(self.listing("by-path").stdout)
        self._values = parse_values(self.listing("values").stdout)
        self._places = Places(self.listing("block").stdout, self._values, self.listing("enclosures").stdout)
        listed = self._section("lsblk", "-").successful(self.host, "lsblk")
        with _keeping_raw_text():
            self._disks = parse_lsblk(listed, self.host)

    def names(self) -> list[str]:
        """The kernel names of the drives that were read, each once."""
        return list(dict.fromkeys(subject for kind, subject in self._sections if kind in {"id-ctrl", "smartctl"}))

    def listing(self, kind: str) -> Section:
        """A section that is about the whole server."""
        return self._section(kind, "-")

    def inventory(self) -> HostInventory:
        """Every drive that was read; one that could not be is in ``unreadable``."""
        drives: list[SeenDrive] = []
        unreadable: dict[str, str] = {}
        unknown: set[str] = set()
        for name in self.names():
            try:
                drives.append(self.drive(name))
            except LabError as error:
                unreadable[f"/dev/{name}"] = str(error)
                if isinstance(error, UnknownFormat):
                    unknown.add(f"/dev/{name}")
        return HostInventory(
            host=self.host,
            drives=tuple(drives),
            phys=parse_phys(self._values),
            unreadable=unreadable,
            unreadable_by_paths={node: self.by_paths.get(node.removeprefix("/dev/"), ()) for node in unreadable},
            of_unknown_format=frozenset(unknown),
        )

    def drive(self, name: str) -> SeenDrive:
        """The drive of a kernel name. Raises UnknownFormat, and LabError where it cannot be read."""
        with _keeping_raw_text():
            reading = self._reading(name)
        by_paths = self.by_paths.get(name, ())
        place = {"by_path": by_paths[0] if by_paths else None, "slot": self._places.slot_of(name, by_paths)}
        found: Mapping[str, str] = {kind: value for kind, value in place.items() if value is not None}
        identity = replace(reading.identity, identifiers={**reading.identity.identifiers, **found})
        disk = self.disk(name)
        if disk is None:
            raise LabError(f"{self.host}:/dev/{name}: lsblk does not list it, so its users are unknown")
        return SeenDrive(
            device=f"/dev/{name}",
            identity=identity,
            by_paths=by_paths,
            is_rotational=disk.is_rotational,
            usage=disk.usage,
            counters=reading.counters,
            findings=reading.findings,
        )

    def disk(self, name: str) -> ListedDisk | None:
        """The disk of a kernel name as lsblk lists it, and those of its users that lsblk does not know.

        What uses the drive by another path to it, which is another disk to lsblk, is a user too.
        """
        if (disk := self._disks.get(name)) is None:
            return None
        usage = self._usage(name, disk)
        for other in parse_paths(self.listing("paths").stdout, name):
            # One that is gone by now is no path to it.
            if (listed := self._disks.get(other)) is not None:
                by_other = self._usage(other, listed)
                claims = (f"{claim}, and {other} is another path to it" for claim in by_other.claims)
                usage = BlockUsage((*usage.claims, *claims), usage.is_boot_drive or by_other.is_boot_drive)
        return replace(disk, usage=usage)

    def _usage(self, name: str, disk: ListedDisk) -> BlockUsage:
        """The users of a disk by the path that has this kernel name."""
        unclaimed = [
            *parse_exports(self.listing("exports").stdout, name),
            *parse_loops(self.listing("loops").stdout, name),
        ]
        return replace(disk.usage, claims=(*disk.usage.claims, *unclaimed))

    def _reading(self, name: str) -> Reading:
        where = f"{self.host}:/dev/{name}"
        if not name.startswith("nvme"):
            return parse_smartctl(self._section("smartctl", name).answer(self.host, "smartctl"), where)
        texts = [self._section(kind, name).successful(self.host, "nvme") for kind in self._of_nvme]
        try:
            return parse_nvme(*(Fields("nvme", where, text) for text in texts))
        except UnknownFormat as error:
            raise UnknownFormat(f"{error} ({self._nvme_version})", tool=error.tool, raw=error.raw) from error

    @cached_property
    def _nvme_version(self) -> str:
        try:
            return self._executor.run(["nvme", "version"], self._deadline).stdout.strip().replace("\n", ", ")
        except LabError as error:
            return f"its version is not known: {error}"

    def _section(self, kind: str, name: str) -> Section:
        try:
            return self._sections[kind, name]
        except KeyError:
            raise LabError(f"{self.host}: the survey of its drives ended before {kind} of /dev/{name}") from None
