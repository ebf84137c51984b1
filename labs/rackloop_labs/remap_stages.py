"""The stages of a remap, merged from the harness's stamps, the rack's log and the first verified read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rackloop.abilities import Applied
from rackloop.record import Stage
from rackloop_drivers import workload

_BY_SIMULATION = "rackd"
_BY_A_KERNEL = "kernel"
_BY_THE_PROBE = "rackprobe"


def remap_stages(applied: Applied, logged: Sequence[Stage], read: workload.VerifiedRead) -> tuple[Stage, ...]:
    """The stages of a remap, each with what the machine may have added since the one before.

    ``logged`` are those that the rack's own log has. The simulated switch has no time of its own: all that passes until
    it acts is the machine's. A stamp of a server's clock is the latest moment that it can have been, and what is not
    known of that clock is in its error. What was mounted was so after the read, and delayed nothing of it.
    """
    verified_ns = read.t_ns + read.clock_error_ns
    by_name = {stage.name: stage for stage in _told_until(verified_ns, logged)}
    written_ns = applied.commanded_ns if applied.written_ns is None else applied.written_ns
    received, executed = by_name.get("received"), by_name.get("executed")
    if received is not None:
        # The switch may have its trigger before the harness's own write returns.
        written_ns = min(written_ns, max(received.at_ns, applied.commanded_ns))
        by_name["received"] = replace(received, error_ns=max(0, received.at_ns - written_ns))
    elif executed is not None and executed.clock == _BY_SIMULATION:
        written_ns = min(written_ns, executed.at_ns)
        by_name["executed"] = replace(executed, error_ns=executed.at_ns - written_ns)
    answered = by_name.get("answered")
    if answered is not None:
        # rackd stamps behind its own act, so the reader may have the answer before.
        due_ns, at_ns = answered.at_ns - answered.error_ns, min(answered.at_ns, verified_ns)
        if read.submit_ns - read.clock_error_ns <= answered.at_ns and due_ns <= verified_ns:
            by_name["answered"] = answered = replace(answered, at_ns=at_ns, error_ns=max(0, at_ns - due_ns))
        else:
            # It was the answer to another read: what came behind it may have been the drive's time.
            del by_name["answered"]
            answered = None
    own_ns = (read.waited_ns or 0) + (read.idle_ns or 0) + 2 * read.clock_error_ns
    late_ns = own_ns if answered is None else verified_ns - answered.at_ns
    return (
        Stage("commanded", applied.commanded_ns, "harness", written_ns - applied.commanded_ns),
        *sorted(by_name.values(), key=lambda stage: stage.at_ns),
        Stage("verified", verified_ns, _BY_THE_PROBE, late_ns),
        *_mounted(read),
    )


def _mounted(read: workload.VerifiedRead) -> Iterator[Stage]:
    """The stage in which the first file was read. Its clock is that of the read, and so is what is not known of it."""
    if read.mounted_ns is not None:
        yield Stage("mounted", read.mounted_ns + read.clock_error_ns, _BY_THE_PROBE, read.mount_waited_ns or 0)


def _told_until(verified_ns: int, stages: Iterable[Stage]) -> Iterator[Stage]:
    """The stages without what a kernel told later than the read; where its clock leaves that open, it was before."""
    for stage in stages:
        early_ns = stage.at_ns - stage.error_ns
        if stage.clock != _BY_A_KERNEL:
            yield stage
        elif early_ns <= verified_ns:
            at_ns = min(stage.at_ns, verified_ns)
            yield replace(stage, at_ns=at_ns, error_ns=at_ns - early_ns)
