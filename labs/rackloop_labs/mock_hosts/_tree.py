"""A tree of attributes and links as sysfs has it, before it is written anywhere."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Link:
    """A symbolic link, to a place relative to its own folder."""

    target: str


Entry: TypeAlias = str | bytes | Link | None
"""The entry at a path: a file with a text or with bytes, a link, or (None) a folder, which may be empty."""


@dataclass
class Tree:
    """Entries by their path below ``/sys``.

    Attributes whose writes mean something are in ``commands``, with the meaning their builder gave them.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    commands: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def file(self, path: str, text: object) -> None:
        """An attribute; its text ends in a newline."""
        self.entries[path] = f"{text}\n"

    def files(self, folder: str, attributes: Mapping[str, object]) -> None:
        """Several attributes of a folder."""
        for name, text in attributes.items():
            self.file(f"{folder}/{name}", text)

    def folder(self, path: str) -> None:
        """A folder, which may stay empty."""
        self.entries[path] = None

    def link(self, path: str, target: str) -> None:
        """A link to another path of the tree, which ends in the name it leads to, as the kernel makes them."""
        folder, name = posixpath.split(target)
        self.entries[path] = Link(posixpath.join(posixpath.relpath(folder or ".", posixpath.dirname(path)), name))

    def command(self, path: str, *meaning: str, text: object = "") -> None:
        """An attribute that acts when it is written; ``text`` is what it reads as, nothing for one only written."""
        self.entries[path] = f"{text}\n" if text != "" else ""
        self.commands[path] = meaning

    def member(self, device: str, subsystem: str) -> None:
        """Make the folder ``device`` a member of ``class/NAME`` or ``bus/NAME``, linked both ways."""
        is_bus = subsystem.startswith("bus/")
        listed = f"{subsystem}/devices" if is_bus else subsystem
        self.link(f"{listed}/{posixpath.basename(device)}", device)
        self.link(f"{device}/subsystem", subsystem)
