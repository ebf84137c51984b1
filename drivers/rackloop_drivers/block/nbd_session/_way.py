"""The ways to an NBD server: its address, or a server's program that speaks through a socket."""

from __future__ import annotations

from errno import ENOENT
from typing import Any, Protocol, runtime_checkable

from rackloop.abilities import BlockDevice
from rackloop.errors import NotConnected, NotSupported, RackloopError
from rackloop_drivers.block.nbd_session._library import library, reason


class Way(Protocol):
    """A way to one export. Its text is how messages name it.

    ``connect`` has libnbd's handle begin to go it, or raises; ``lost`` is the error of a connection that libnbd says
    this of.
    """

    def connect(self, library: Any, handle: int) -> None: ...
    def lost(self, said: str) -> RackloopError: ...
    def close(self) -> None: ...


class Serving(Protocol):
    """A server of one export, for one client that speaks through a socket; see HostPath.serve."""

    where: str
    export: str
    size_bytes: int

    def take_socket(self) -> int: ...
    def loss(self, said: str) -> RackloopError: ...
    def close(self) -> None: ...


@runtime_checkable
class ServedDevice(Protocol):
    """A BlockDevice that is out of reach, but can be served to this machine."""

    def serve(self, *, writes: bool) -> Serving: ...


class AddressWay:
    """The export of an NBD URI."""

    def __init__(self, device: BlockDevice) -> None:
        self._uri = device.probe_target()
        if not self._uri.startswith(("nbd:", "nbd+unix:")):
            raise NotSupported(f"{self._uri} is no NBD export, and nothing serves it to this machine")
        self._device = device

    def __str__(self) -> str:
        return self._uri

    @property
    def size_bytes(self) -> int:
        """The size of the device."""
        return self._device.size_bytes

    def connect(self, library: Any, handle: int) -> None:
        """Begin to connect and to negotiate. Raises NotConnected where nothing listens."""
        if library.nbd_aio_connect_uri(handle, self._uri.encode()) < 0:
            raise self.lost(reason())

    def lost(self, said: str) -> RackloopError:
        """NotConnected, with what libnbd said of its last call, or NotSupported where there is no such export."""
        if "handshake" in said and library().nbd_get_errno() == ENOENT:
            return NotSupported(f"{self._uri}: {said}")
        return NotConnected(f"{self._uri}: {said}; is the lab up?")

    def close(self) -> None:
        """Nothing to do: the connection is libnbd's."""


class ServedWay:
    """The program that serves a drive for as long as this is open."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self.size_bytes = serving.size_bytes
        self._is_closed = False

    def __str__(self) -> str:
        return self._serving.where

    def connect(self, library: Any, handle: int) -> None:
        """Begin to negotiate."""
        descriptor = self._serving.take_socket()
        if (
            library.nbd_set_export_name(handle, self._serving.export.encode()) < 0
            or library.nbd_aio_connect_socket(handle, descriptor) < 0
        ):
            raise self.lost(reason())

    def lost(self, said: str) -> RackloopError:
        """The reason why the server answers no more."""
        return self._serving.loss(said)

    def close(self) -> None:
        """End the server; closing twice does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._serving.close()


def way_to(device: BlockDevice, *, writes: bool) -> AddressWay | ServedWay:
    """The way to ``device``. Raises NotSupported where there is none, and as HostPath.serve does."""
    return ServedWay(device.serve(writes=writes)) if isinstance(device, ServedDevice) else AddressWay(device)
