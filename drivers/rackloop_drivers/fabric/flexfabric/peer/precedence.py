"""Being woken at once on a machine that is busy with other things.

Linux's fair scheduler lets a running thread finish its slice, some milliseconds, before one that wakes takes over. A
thread that asks for shorter slices has an earlier deadline and takes over at once (EEVDF with custom slices, Linux
6.12; ``sched_setattr(2)``), as long as it has not had its share of the core: a lower nice value makes its share larger,
where the kernel allows it. The native programs ask for themselves.
"""

from __future__ import annotations

import ctypes
import os
import struct

# By machine: the numbers of sched_setattr and sched_getattr, which no C library offers.
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}
# struct sched_attr as far as its first version goes: size, policy, flags, nice, priority, runtime, deadline, period.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
_FAIR = 0
_NOT_FOR_CHILDREN = 1
# What a Python process does when it is woken should fit into one.
_SLICE_NS = 500_000
_NICE = -10


def ask_for_precedence() -> bool:
    """Ask for short slices and precedence over other threads for the calling thread, not for what it starts.

    Without the privilege (``CAP_SYS_NICE``) it is short slices alone. Returns whether the kernel took the call, which
    one before 6.12 does too and leaves slices as they are: the caller goes on either way.
    """
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        return False
    system = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if system.syscall(calls[1], 0, attributes, _ATTRIBUTES.size, 0) != 0:
        return False
    size, policy, flags, nice, priority, _, deadline_ns, period_ns = _ATTRIBUTES.unpack(attributes.raw)
    if policy != _FAIR:
        # Whoever runs this under a real-time policy is prompter already.
        return True
    for wanted_nice in (min(nice, _NICE), nice):
        wanted = _ATTRIBUTES.pack(
            size, policy, flags | _NOT_FOR_CHILDREN, wanted_nice, priority, _SLICE_NS, deadline_ns, period_ns
        )
        if system.syscall(calls[0], 0, ctypes.create_string_buffer(wanted, len(wanted)), 0) == 0:
            return True
    return False
