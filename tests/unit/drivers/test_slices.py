"""Asking the kernel for short slices."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from rackloop_drivers.fabric.flexfabric.peer.slices import ask_for_short_slices


@pytest.mark.parametrize("for_children", [False, True])
def test_a_kernel_takes_the_call_wherever_its_number_is_known(for_children: bool) -> None:
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(ask_for_short_slices, for_children=for_children).result()
    assert taken is (os.uname().machine in {"x86_64", "aarch64"})
