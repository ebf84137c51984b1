"""The same work on many servers at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, NotConnected, RackloopError

T = TypeVar("T")

# An action that honours its deadline still takes a moment to say so.
_GRACE_S = 5.0


def run_on_all(hosts: Collection[Host], action: Callable[[Host, Deadline], T], deadline: Deadline) -> dict[str, T]:
    """The results of ``action(host, deadline)``, by the host's name; all run at the same time.

    Waits for all of them. Raises NotConnected with one entry for each host where it failed, by name, or BadInput with
    the same where each of these failures is the user's to mend; an error that is not of Rackloop's own tree is raised
    as it is. An action that overstays its deadline is left behind.
    """
    if not hosts:
        return {}
    pool = ThreadPoolExecutor(len(hosts), thread_name_prefix="host")
    try:
        running = {host.name: pool.submit(action, host, deadline) for host in hosts}
        wait(running.values(), timeout=deadline.remaining_s() + _GRACE_S)
        failures = {name: error for name, future in running.items() if (error := _failure(name, future))}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if failures:
        told = NotConnected(f"{len(failures)} of {len(hosts)} servers failed:", failures)
        raise BadInput(str(told)) if all(isinstance(error, BadInput) for error in failures.values()) else told
    return {name: future.result() for name, future in running.items()}


def _failure(name: str, future: Future[T]) -> RackloopError | None:
    if not future.done():
        return DeadlineExceeded(f"{name}: the work there did not end in time")
    error = future.exception()
    if error is None or isinstance(error, RackloopError):
        return error
    raise error
