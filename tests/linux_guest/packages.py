"""Debian's packages for the guest, as ``./rackloop test nightly`` unpacked them: nothing of them is installed here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

UNPACKED = Path(__file__).parents[2] / ".rackloop" / "guest" / "unpacked"
"""Where ``./rackloop`` unpacks what ``requirements/apt-guest.txt`` names."""

_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True)
class GuestPackages:
    """A kernel, its modules and programs below ``root``."""

    root: Path

    @property
    def is_there(self) -> bool:
        """Whether they were unpacked."""
        return any(self.root.glob("boot/vmlinuz-*"))

    @property
    def kernel(self) -> Path:
        """The kernel."""
        (kernel,) = self.root.glob("boot/vmlinuz-*")
        return kernel

    def modules(self, names: Iterable[str]) -> list[Path]:
        """The modules of these names and all that they depend on, in the order in which they can be loaded."""
        # A name may have - in the file and _ in what depends on it.
        found = {path.stem.replace("-", "_"): path for path in self.root.glob("lib/modules/*/kernel/**/*.ko")}
        return list(dict.fromkeys(path for name in names for path in _with_dependencies(found, name.replace("-", "_"))))


def _with_dependencies(found: dict[str, Path], name: str) -> Iterator[Path]:
    path = found[name]
    # What a module depends on stands in its section .modinfo; depmod, which needs a whole tree, reads the same.
    depends = _DEPENDS.search(b"\0" + path.read_bytes())
    for other in filter(None, depends[1].decode().split(",")) if depends else ():
        yield from _with_dependencies(found, other.replace("-", "_"))
    yield path
