"""The interface of a box that tenants share: the exports that an adapter offers, and the drives behind them.

A box may be a scheduler in front of one drive, a storage server, or an array of any vendor. Its adapter says which
export is whose and what is behind it; it decides nothing about their shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rackloop.safety import TenantRegion


@dataclass(frozen=True)
class TenantExport:
    """The export of one tenant: where its I/O is made, and what is behind it.

    ``server`` is the server of the lab on which ``region.device`` is reached; ``drive`` is the drive of the lab whose
    bytes the region is, which the guard must permit.
    """

    server: str
    drive: str
    region: TenantRegion

    @property
    def tenant(self) -> str:
        """The tenant's name."""
        return self.region.tenant


@runtime_checkable
class TenantBox(Protocol):
    """A box, as the harness needs it: ``name`` is how results tell it from others, ``exports`` are its tenants'.

    ``require_serving`` raises where the box has ended by itself, so that what fails is not taken for its scheduling.
    ``close`` ends what the adapter started, and nothing else; closing twice does nothing.
    """

    @property
    def name(self) -> str: ...
    @property
    def exports(self) -> Sequence[TenantExport]: ...
    def require_serving(self) -> None: ...
    def close(self) -> None: ...
