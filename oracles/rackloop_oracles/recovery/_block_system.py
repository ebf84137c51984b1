"""Any blocks as a system under test: a drive, a volume, a Linux md array."""

from __future__ import annotations

from typing import Protocol

from rackloop.abilities.blocks import Blocks
from rackloop.errors import BadInput
from rackloop_oracles.recovery._sectors import SECTOR_BYTES
from rackloop_oracles.recovery._system import Health, RecoveryState, SelfDescription, SilentCorruption


class StateSource(Protocol):
    """Says how a system is, from where it can be read beside its data."""

    def recovery_state(self) -> RecoveryState: ...


class BlockSystem:
    """``blocks`` as a system under test, of which its owner says ``k``, ``m`` and what it covers.

    ``state`` tells how it is; without one that is unknown. ``size_bytes`` takes less than all of the blocks.
    ``atomic_bytes`` is what a write that is not acknowledged leaves old or new as a whole, by default a logical
    sector of 512 bytes: what every drive keeps. Raises BadInput where not one block fits.
    """

    def __init__(
        self,
        blocks: Blocks,
        name: str,
        *,
        state: StateSource | None = None,
        k: int | None = None,
        m: int | None = None,
        block_bytes: int = SECTOR_BYTES,
        size_bytes: int | None = None,
        atomic_bytes: int = 512,
        silent_corruption: SilentCorruption = SilentCorruption.UNKNOWN,
        reports_damage: bool = False,
    ) -> None:
        size = blocks.size_bytes if size_bytes is None else size_bytes
        if not block_bytes <= size <= blocks.size_bytes:
            raise BadInput(f"{name}: {size} bytes are to be used, of {blocks.size_bytes}, in blocks of {block_bytes}")
        self._blocks = blocks
        self._state = state
        self._description = SelfDescription(
            name, block_bytes, size // block_bytes, k, m, atomic_bytes, silent_corruption, reports_damage
        )

    def describe(self) -> SelfDescription:
        """The description that its owner gave."""
        return self._description

    def put(self, first: int, data: bytes) -> None:
        """Write. Raises as the blocks do."""
        self._blocks.write(first * self._description.block_bytes, data)

    def get(self, first: int, count: int) -> bytes:
        """Read. Raises as the blocks do."""
        return self._blocks.read(first * self._description.block_bytes, count * self._description.block_bytes)

    def flush(self) -> None:
        """Flush the blocks."""
        self._blocks.flush()

    def recovery_state(self) -> RecoveryState:
        """The state by the source of states, unknown without one."""
        return self._state.recovery_state() if self._state else RecoveryState(Health.UNKNOWN, "it was not asked")
