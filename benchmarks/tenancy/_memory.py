"""Memory of virtual time: per tenant and per GB of drive, as differences of drivesim's largest resident memory.

A tenant's is the difference of 16 and 272 tenants on one drive, 4 KiB reads QD32 each through Gimbal, over 256: with
its queue, its histograms and its part of the scheduler. A drive's is the difference of full ones of 36 and of 4 GiB.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.tenancy._drivesim import FILL, GIB, run, tenants
from benchmarks.tenancy._figure import Figure

FEW, MANY = 16, 272
SMALL, LARGE = 4 * GIB, 36 * GIB
SECONDS = 0.1


def figures(_rounds: int) -> Sequence[Figure]:
    """Measure once: memory does not vary with the load of the machine."""
    few, many, large = (
        run([FILL, tenants(count, SECONDS, size)], size).peak_bytes
        for count, size in ((FEW, SMALL), (MANY, SMALL), (FEW, LARGE))
    )
    tenant_kib = (many - few) / (MANY - FEW) / 1024
    drive_kib = (large - few) / ((LARGE - SMALL) / 1e9) / 1024
    return [
        Figure("memory per simulated tenant", f"{tenant_kib:,.0f} KiB"),
        Figure("memory per GB of a full drive", f"{drive_kib:,.0f} KiB"),
    ]
