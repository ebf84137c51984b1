"""The poster's and the paper's figures of remote flash, beside what the model gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackloop_models.remote_flash._admission import Admission
from rackloop_models.remote_flash._hardware import A72, GIGABITS_PER_S, X86
from rackloop_models.remote_flash._scaling import Loaded, Scaled
from rackloop_models.tenancy import Claim

_ALIKE = 0.95
_NEEDED_CORES = 4


@dataclass(frozen=True)
class Measured:
    """The results that the claims are held against: those of a box of ``drives`` drives and of one of twice as many."""

    drives: int
    scaling: Sequence[Scaled]
    scaling_of_twice: Sequence[Scaled]
    added_s: dict[str, float]
    large_reads_bytes_per_s: float
    at_400k: Loaded
    admissions: Sequence[Admission]


def claims(found: Measured) -> tuple[Claim, ...]:
    """The claims, each with the figures: what the model was given is no agreement, and said to be."""
    on_four, on_four_of_twice = (
        next(one for one in rows if one.kind == A72 and one.cores == _NEEDED_CORES)
        for rows in (found.scaling, found.scaling_of_twice)
    )
    p95_us = found.at_400k.p95_s * 1e6
    gigabits = found.large_reads_bytes_per_s * 8 / 1e9
    most = max(one.iops for one in found.scaling_of_twice)
    needed = wire_gigabits_per_s(4_000_000, 4096)
    classes = [one for one in found.admissions if one.p95_us >= 5000 and one.is_kept is not None]
    return (
        Claim(
            "p95 of 4 KiB reads at 400 K IOPS",
            "< 400 us",
            f"{p95_us:.0f} us at {found.at_400k.iops / 1e3:.0f} K IOPS, {found.drives} drives, {_NEEDED_CORES} A72",
            p95_us < 400 and found.at_400k.iops >= _ALIKE * 400e3,
        ),
        Claim(
            "4 KiB reads on four cores",
            "2100 K IOPS",
            f"{on_four.iops / 1e3:.0f} K with {found.drives} drives, where {on_four.bound} are the limit; "
            f"{on_four_of_twice.iops / 1e3:.0f} K with {2 * found.drives}, where {on_four_of_twice.bound} are",
            on_four.iops >= _ALIKE * 2_100e3,
        ),
        Claim(
            "added to a read by the A72",
            "22 us",
            f"{found.added_s[A72.name] * 1e6:.1f} us: given to the model",
            None,
        ),
        Claim(
            "added to a read by x86 over TCP",
            "21 us",
            f"{found.added_s[X86.name] * 1e6:.1f} us: given to the model",
            None,
        ),
        Claim(
            "4 KiB reads of an x86 core over TCP",
            "850 K IOPS",
            f"{next(one for one in found.scaling if one.kind == X86 and one.cores == 1).iops / 1e3:.0f} K: "
            "given to the model",
            None,
        ),
        Claim(
            "throughput of large reads",
            "90+ Gbps",
            f"{gigabits:.1f} Gb/s of 128 KiB reads, {found.drives} drives, {_NEEDED_CORES} A72",
            gigabits >= 90,
        ),
        Claim(
            "capable IOPS",
            "4,000,000+",
            f"{most / 1e3:.0f} K of 4 KiB with {2 * found.drives} drives: 4 M would be {needed:.0f} Gb/s on a link of "
            f"{GIGABITS_PER_S:.0f}",
            most >= 4_000_000,
        ),
        Claim(
            "objectives of 5 to 10 ms are kept",
            "5-10 ms",
            ", ".join(map(_told, classes)) or "not measured",
            all(one.is_kept for one in classes) if classes else None,
        ),
    )


def _told(one: Admission) -> str:
    worst = "was served none" if one.worst_p95_us is None else f"{one.worst_p95_us / 1e3:.2g} ms"
    return f"{one.admitted} readers of 20 K at {one.p95_us / 1e3:g} ms: worst {worst}"


def wire_gigabits_per_s(requests_per_s: float, request_bytes: int) -> float:
    """The data of so many requests a second, in Gb/s, without any header."""
    return requests_per_s * request_bytes * 8 / 1e9
