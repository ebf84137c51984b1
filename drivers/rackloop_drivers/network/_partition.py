"""A fault: a server whose packet filter drops everything but the SSH of the harness.

Sources: nft(8) for tables, base chains and their policy; sshd(8) for ``SSH_CONNECTION``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from ipaddress import IPv6Address, ip_address
from typing import Any, Protocol

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.errors import BadInput, FaultRefused, LabError, ToolError
from rackloop_drivers.failed_command import failure_of

_LONGEST_S = 3600
"""A partition that no harness ends is over after this, by the server's own timer."""

# How much longer than a new login may take a partition stands that none has come into yet.
_SPARE_S = 10.0
_NO_TOOL = 5


class ReachedHost(Host, Protocol):
    """A server that can be logged in to once more."""

    def run_apart(self, argv: Sequence[str], deadline: Deadline) -> Completed: ...


class HostPartition:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a server's network: its one kind is ``partition``.

    The server drops every packet, of every address, but those of its own loopback, those by which it keeps its address
    and finds its way, and SSH from the address that the harness comes from, be it that of a jump host: so that it is
    mended the way it was made. A new login must come in first: where none does the server ends the partition by itself
    soon, after ``trial_s``, by default 10 s more than the caller's deadline; else it does so after ``longest_s``. A
    reboot ends it too. A server that has a file system mounted from the network, or from a disk of iSCSI or NVMe over
    TCP or RDMA, is refused with FaultRefused. Needs root and nft there.
    """

    kinds = frozenset({"partition"})

    def __init__(self, host: ReachedHost, longest_s: float = _LONGEST_S, *, trial_s: float | None = None) -> None:
        self._host = host
        self._longest_s = longest_s
        self._trial_s = trial_s

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._host.name} takes no {', '.join(surplus)}")
        lines = self._run("look", "/sys", deadline=deadline).splitlines()
        if mounted := [line.removeprefix("mount ") for line in lines if line.startswith("mount ")]:
            reasons = [f"{place} is mounted from the network, and would hang" for place in mounted]
            raise FaultRefused(f"partition of {self._host.name}", reasons)
        client, _, _, port = self._connection(lines)
        return {"client": client, "port": port}

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`.

        Raises LabError where no new login comes in.
        """
        family = "ip6" if isinstance(ip_address(note["client"]), IPv6Address) else "ip"
        trial_s = deadline.remaining_s() + _SPARE_S if self._trial_s is None else self._trial_s
        self._run("begin", family, note["client"], note["port"], f"{trial_s:.3f}", deadline=deadline)
        try:
            self._run("hold", f"{self._longest_s:.3f}", deadline=deadline, by=self._host.run_apart)
        except LabError as error:
            raise LabError(
                f"{self._host.name}: with its network cut no new login came in, and it ends that by itself within "
                f"{trial_s:.0f} s; look at whether a tunnel leads there, and from which addresses it is reached: "
                f"{error}"
            ) from error

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:  # noqa: ARG002 - there is one at most
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return self._run("stands", deadline=deadline).strip() == "yes"

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:  # noqa: ARG002 - there is one at most
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._run("end", deadline=deadline)

    def _connection(self, lines: list[str]) -> list[str]:
        """The two ends of the SSH connection as the server sees them: address and port of the client, then its own."""
        found = next((line.split()[1:] for line in lines if line.startswith("from ")), [])
        try:
            client, client_port, own, own_port = found
            return [str(ip_address(client.partition("%")[0])), client_port, own, str(int(own_port))]
        except ValueError:
            raise LabError(
                f"{self._host.name}: sshd does not say where this connection comes from (SSH_CONNECTION is "
                f"{' '.join(found) or 'not set'}), so that it could not be spared; look at how the account logs in"
            ) from None

    def _run(self, what: str, *arguments: str, deadline: Deadline, by: Callable[..., Completed] | None = None) -> str:
        script = files("rackloop_drivers.network").joinpath("partition.sh").read_text(encoding="utf-8")
        completed = (by or self._host.run)(["sh", "-c", script, "partition", what, *arguments], deadline)
        if completed.status == _NO_TOOL:
            raise ToolError(f"nft was not found on {self._host.name}: install its package nftables there")
        if completed.status:
            said = failure_of(completed)
            raise LabError(f"{self._host.name}: its packet filter: {said}; it takes root on the server")
        return completed.stdout
