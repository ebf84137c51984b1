"""Asking the kernel for precedence."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from rackloop_drivers.fabric.flexfabric.peer.precedence import ask_for_precedence


def _asked() -> tuple[bool, int]:
    taken = ask_for_precedence()
    return taken, os.getpriority(os.PRIO_PROCESS, 0)


def test_a_kernel_takes_the_call_wherever_its_number_is_known() -> None:
    # In a thread of its own: the others of this process keep what they have.
    with ThreadPoolExecutor(1) as thread:
        taken, nice = thread.submit(_asked).result()
    assert taken is (os.uname().machine in {"x86_64", "aarch64"})
    assert nice <= -10 or os.geteuid() != 0
