"""The guard's permission to write that a session holds while it is open."""

from __future__ import annotations

from rackloop.abilities import BlockDevice, WritableDrive
from rackloop.errors import BadInput


class Permit:
    """The permission that ``device`` carries with it: a WritableDrive has one, a bare BlockDevice is only read."""

    def __init__(self, device: BlockDevice | WritableDrive) -> None:
        self._drive = device if isinstance(device, WritableDrive) else None
        self.device: BlockDevice = device.device if isinstance(device, WritableDrive) else device

    @property
    def is_given(self) -> bool:
        """Whether there is one, open or not."""
        return self._drive is not None

    def require(self, descriptor: int | None = None) -> None:
        """Return where the drive may be written now, through ``descriptor`` if one is given.

        Raises BadInput without a permission, LabError once it is over, GuardRefused where another drive is there.
        """
        if self._drive is None:
            raise BadInput(
                f"{self.device.probe_target()} was opened to be read; writing takes a WritableDrive from the guard"
            )
        self._drive.require(descriptor)
