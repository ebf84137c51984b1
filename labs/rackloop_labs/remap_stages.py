"""The stages of a remap, merged from the harness's stamps, the rack's log and the first verified read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rackloop.abilities import Applied
from rackloop.record import Stage
from rackloop_drivers import workload

_BY_SIMULATION = "rackd"


def remap_stages(applied: Applied, logged: Sequence[Stage], read: workload.VerifiedRead) -> tuple[Stage, ...]:
    """The stages of a remap, each with what the machine may have added since the one before.

    ``logged`` are those that the rack's own log has. The simulated switch has no time of its own: all that passes until
    it acts is the machine's.
    """
    by_name = {stage.name: stage for stage in logged}
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
        due_ns, at_ns = answered.at_ns - answered.error_ns, min(answered.at_ns, read.t_ns)
        if read.submit_ns <= answered.at_ns and due_ns <= read.t_ns:
            by_name["answered"] = answered = replace(answered, at_ns=at_ns, error_ns=max(0, at_ns - due_ns))
        else:
            # It was the answer to another read: what came behind it may have been the drive's time.
            del by_name["answered"]
            answered = None
    late_ns = (read.waited_ns or 0) + (read.idle_ns or 0) if answered is None else read.t_ns - answered.at_ns
    return (
        Stage("commanded", applied.commanded_ns, "harness", written_ns - applied.commanded_ns),
        *sorted(by_name.values(), key=lambda stage: stage.at_ns),
        Stage("verified", read.t_ns, "rackprobe", late_ns),
    )
