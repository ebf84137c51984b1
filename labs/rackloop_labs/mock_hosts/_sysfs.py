"""``/sys`` and ``/dev/disk`` of a mock server: folders on this machine, and the effects of writes to them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import posixpath
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

from asyncinotify import Inotify, Mask

from rackloop.errors import LabError
from rackloop_labs.mock_hosts._disk_links import disk_links, node_files
from rackloop_labs.mock_hosts._sysfs_machine import add_machine
from rackloop_labs.mock_hosts._sysfs_ports import build_tree
from rackloop_labs.mock_hosts._tree import Entry, Link, Tree
from rackloop_labs.mock_hosts._view import HbaPort, HostActs, HostView
from rackloop_labs.mock_hosts._watch import HostWatch

SYSRQ_TRIGGER = "sysrq-trigger"
"""The file in ``written`` that is the server's ``/proc/sysrq-trigger``."""
WRITTEN = ".written"
"""The places below ``/sys`` of the attributes that may be written."""

_T = TypeVar("_T")

# Longer than any value that means something.
_MOST_BYTES = 64
# The time at which a file that may be written was written last, while no server has done so.
_UNTOUCHED_NS = 0


class Sysfs:
    """``/sys`` and ``/dev/disk`` of ``server``, in folders below ``folder``, which is the server's own.

    To be bound into its sandbox: ``sys`` read-only at ``/sys``, over it ``written`` writable at ``/sys/.written``, and
    ``disk`` read-only at ``/dev/disk``. The attributes that act when they are written are links into ``/sys/.written``,
    so a write to any other fails as on a read-only file system. A write returns before it has acted, and a value that
    the kernel would refuse is ignored; one that is emptied without a write stays empty until it is written. What
    changes in the rack is told from the next :meth:`refresh` on. ``on_sysrq`` is called with each letter that is
    written to the server's ``/proc/sysrq-trigger``.
    """

    def __init__(self, folder: Path, server: str, watch: HostWatch) -> None:
        self.sys = folder / "sys"
        self.written = folder / "written"
        self.disk = folder / "disk"
        self._staging = folder / "staging"
        self._server = server
        self._watch = watch
        self._lock = Lock()
        self._changes = -1
        self._tree = Tree()
        self._disk: Mapping[str, Entry] = {}
        self._view: HostView | None = None
        self.on_sysrq: Callable[[str], object] = lambda _letter: None
        self._inotify: Inotify | None = None
        self._obeying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Write the folders, and obey what is written until :meth:`close`."""
        for folder in (self.sys, self.sys / WRITTEN, self.written, self.disk, self._staging):
            folder.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(self.refresh)
        (self.written / SYSRQ_TRIGGER).touch(mode=0o200)
        self._inotify = Inotify()
        self._inotify.add_watch(self.written, Mask.CLOSE_WRITE)
        self._obeying = asyncio.create_task(self._obey_all(self._inotify))

    async def close(self) -> None:
        """Obey no longer; the folders stay."""
        if self._obeying is not None:
            self._obeying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._obeying
        if self._inotify is not None:
            self._inotify.close()

    def boot(self) -> None:
        """Have the folders tell what a server that booted finds, whatever the one before it left half written."""
        with self._lock:
            for name, entry in _commanded(self._tree).items():
                self._put(self.written / name, entry, is_obeyed=True)
        self.refresh()

    async def catch_up(self) -> None:
        """:meth:`refresh` without holding up the event loop; what fails is said on standard error."""
        await self._try(self.refresh)

    def refresh(self) -> None:
        """Have the folders tell what is so now; nothing is written where nothing has changed since.

        A server that has not booted keeps what it had. Safe from several threads.
        """
        # No power, or rackd is just ending.
        with self._lock, contextlib.suppress(LabError):
            if self._watch.changes(self._server) != self._changes:
                self._tell(self._watch.view(self._server))

    def view(self) -> HostView:
        """The server now, and what the folders tell from here on is not older; rackd is asked once for both.

        Safe from several threads. Raises LabError where the server has not booted, or rackd is just ending.
        """
        with self._lock:
            view = self._watch.view(self._server)
            if view.changes != self._changes:
                with contextlib.suppress(LabError):
                    self._tell(view)
        return view

    def _tell(self, view: HostView) -> None:
        tree = build_tree(view)
        self._view = view
        add_machine(tree, self._server, os.cpu_count() or 1)
        self._write(tree, {**disk_links(view), **node_files(view, self._watch.nbd)})
        self._changes = view.changes

    async def _obey_all(self, inotify: Inotify) -> None:
        async for event in inotify:
            if str(event.name) == SYSRQ_TRIGGER:
                self.on_sysrq(_read(self.written / SYSRQ_TRIGGER)[:1])
            elif event.name is not None:
                await self._try(self._obey, str(event.name))

    async def _try(self, act: Callable[..., None], *arguments: str) -> None:
        """Act in a thread; what fails is said on standard error, and the server goes on."""
        try:
            await asyncio.to_thread(act, *arguments)
        except (LabError, OSError) as error:
            sys.stderr.write(f"labd: {self._server}: /sys: {error}\n")

    def _obey(self, name: str) -> None:
        """Act as the write to a file of ``written`` asks, and have it read as the kernel has it."""
        path = name.replace("!", "/")
        with self._lock:
            meaning, view = self._tree.commands.get(path), self._view
            # A program that starts as a file is put there has it open as well until it runs, and closes it then.
            if meaning is None or view is None or not _was_written(self.written / name):
                return
            # A server that has emptied it is about to write to this very file, whose place none may take until then.
            if not (text := _read(self.written / name)):
                return
            self._put(self.written / name, self._tree.entries[path], is_obeyed=True)
        obey(meaning, text.strip(), view, self._watch.acts(self._server))
        self.refresh()

    def _write(self, tree: Tree, disk: Mapping[str, Entry]) -> None:
        """Bring the folders from what they were written as to ``tree`` and ``disk``."""
        self._sync(self.sys, _redirected(self._tree), _redirected(tree))
        self._sync(self.written, _commanded(self._tree), _commanded(tree))
        self._sync(self.disk, self._disk, disk)
        self._tree, self._disk = tree, disk

    def _sync(self, top: Path, before: Mapping[str, Entry], now: Mapping[str, Entry]) -> None:
        folders, wanted = _folders(before), _folders(now)
        for folder in sorted(folders - wanted, key=len):
            shutil.rmtree(top / folder, ignore_errors=True)
        for path in before.keys() - now.keys():
            if posixpath.dirname(path) in {*wanted, ""}:
                (top / path).unlink(missing_ok=True)
        for folder in sorted(wanted - folders, key=len):
            (top / folder).mkdir(parents=True, exist_ok=True)
        # Nobody looks at folders that are written for the first time; what is written to ``written`` is obeyed, though.
        put = self._put if before or top == self.written else _make
        for path, entry in now.items():
            if entry is not None and before.get(path) != entry:
                put(top / path, entry)

    def _put(self, path: Path, entry: Entry, *, is_obeyed: bool = False) -> None:
        """Write a file or a link in one step, so that no reader finds half of it.

        What a server wrote stays until it ``is_obeyed``: the kernel acts on every write.
        """
        is_writable = path.parent == self.written
        if is_writable and not is_obeyed and _was_written(path):
            return
        fresh = self._staging / "entry"
        fresh.unlink(missing_ok=True)
        _make(fresh, entry)
        if is_writable:
            os.utime(fresh, ns=(_UNTOUCHED_NS, _UNTOUCHED_NS))
        fresh.replace(path)


def obey(meaning: tuple[str, ...], text: str, view: HostView, acts: HostActs) -> None:
    """Do what a write of ``text`` to an attribute means, see :class:`~rackloop_labs.mock_hosts._tree.Tree`.

    Nothing where the kernel would refuse the value, or what it is about has gone.
    """
    match meaning:
        case ("link_reset", port) if text not in {"", "0"}:
            _each(acts.reset_link, (known for known in view.ports if known.name == port))
        case ("enable", port) if text in {"0", "1"}:
            act = acts.enable_link if text == "1" else acts.disable_link
            _each(act, (known for known in view.ports if known.name == port))
        case ("rescan", port):
            _each(acts.rescan, (known for known in view.ports if known.name == port))
        case ("reset_controller", name):
            _each(acts.reset_controller, (drive for drive in view.drives if drive.kernel_name == name))
        case ("delete", name):
            _each(acts.remove, (drive for drive in view.drives if drive.kernel_name == name))
        case ("remove_function", port) if text not in {"", "0"}:
            _each(acts.remove_function, (known for known in view.ports if known.name == port))
        case ("scan", port):
            _scan(text.split(), (known for known in view.ports if known.name == port), acts)
        case ("rescan_bus",) if text not in {"", "0"}:
            acts.rescan_bus()
        case ("rescan_bus", port) if text not in {"", "0"}:
            _each(acts.rescan_bus, (known for known in view.ports if known.name == port))
        case ("pci_slot_power", port) if text in {"0", "1"}:
            is_on = text == "1"
            _each(lambda known: acts.power_pci_slot(known, on=is_on), (at for at in view.ports if at.name == port))
        case ("slot_power", expander, slot) if text in {"on", "off"}:
            for known in view.expanders:
                if known.name == expander:
                    acts.power_slot(known, int(slot), on=text == "on")


def _scan(words: Sequence[str], ports: Iterable[HbaPort], acts: HostActs) -> None:
    """Look at a channel, a target and a LUN of ports, each a number or ``-`` for all; nothing where it is no such."""
    if len(words) != 3 or not all(word == "-" or word.isdecimal() for word in words):
        return
    channel, target, lun = (None if word == "-" else int(word) for word in words)
    # There is one channel, and each target has one LUN.
    if not channel and not lun:
        _each(lambda port: acts.rescan(port, target), ports)


def _each(act: Callable[[_T], None], things: Iterable[_T]) -> None:
    for thing in things:
        act(thing)


def _make(path: Path, entry: Entry) -> None:
    """Make a file or a link where nothing is."""
    if isinstance(entry, Link):
        path.symlink_to(entry.target)
        return
    # Hundreds are made while a lab comes up: no file object is needed for one write.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(descriptor, entry if isinstance(entry, bytes) else (entry or "").encode())
    os.close(descriptor)


def _was_written(path: Path) -> bool:
    """Whether a server wrote to a file after it was put there, or has emptied it to do so."""
    try:
        return path.lstat().st_mtime_ns != _UNTOUCHED_NS
    except OSError:
        return False


def _redirected(tree: Tree) -> dict[str, Entry]:
    """The tree with links in place of the attributes that may be written."""
    return {
        path: Link(posixpath.relpath(_written(path), posixpath.dirname(path))) if path in tree.commands else entry
        for path, entry in tree.entries.items()
    }


def _commanded(tree: Tree) -> dict[str, Entry]:
    """The attributes that may be written, by the names of their files."""
    return {path.replace("/", "!"): tree.entries[path] for path in tree.commands}


def _written(path: str) -> str:
    return f"{WRITTEN}/{path.replace('/', '!')}"


def _folders(entries: Mapping[str, Entry]) -> set[str]:
    folders = {path for path, entry in entries.items() if entry is None}
    for path in entries:
        while (path := posixpath.dirname(path)) and path not in folders:
            folders.add(path)
    return folders


def _read(path: Path) -> str:
    """The content of a file that a server wrote, which it may have replaced by anything."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, _MOST_BYTES).decode("ascii", "replace") if is_file else ""
    finally:
        os.close(descriptor)
