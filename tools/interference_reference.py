"""Write the table of interference into docs/explanations/drive-models.md, from the profile and the model.

``python tools/interference_reference.py``, in the environment of the tests with drivesim built, after a change to the
SSD model or to the profile. It takes the time of fragmenting a drive of 4 GiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from generated import with_between
from rackloop.clock import Deadline, RealClock
from rackloop.lab import Published, load_profile
from rackloop.units import format_quantity
from rackloop_drivers.host import LocalExecutor
from rackloop_models.drives import Check, DriveSim, published_checks

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanations" / "drive-models.md"
PROFILE = "nvme-ssd"
SIZE_BYTES, SEED = 4 << 30, 1
BEGIN = "<!-- Written by tools/interference_reference.py from the profile and the model. -->\n"
WORDS = {
    "randread.latency.average.4KiB": "unloaded read of 4 KiB, the drive's own part",
    "randread.iops.depth128.4KiB": "random reads of 4 KiB, 128 in flight",
    "seqread.iops.depth32.4KiB": "sequential reads of 4 KiB, 32 in flight",
    "sequential.read": "sequential reads of 128 KiB",
    "sequential.write": "sequential writes of 128 KiB",
    "randwrite.iops.depth32.4KiB": "random writes of 4 KiB, sustained",
    "fragmented.write.ratio": "fragmented against clean write bandwidth",
    "mixed5.iops.loss": "loss of all requests by 5 % writes, fragmented",
    "neighbour.read.depth1.bandwidth": "128 KiB random reads at depth 1 beside 4 KiB reads at depth 32",
    "neighbour.read.depth1.deficit": "by how much that is less than the 4 KiB reads get",
    "neighbour.read.depth8.bandwidth": "the same at depth 8",
    "neighbour.read.depth8.ratio": "how many times that is what the 4 KiB reads get",
    "neighbour.write.loss": "loss of 4 KiB reads where a neighbour of equal depth writes instead of reads",
}


def checks() -> tuple[Check, ...]:
    """Every published figure of the profile beside the model's."""
    clock = RealClock()
    with LocalExecutor(clock) as executor:
        sim = DriveSim(executor, load_profile(PROFILE), size_bytes=SIZE_BYTES, seed=SEED)
        return published_checks(sim, Deadline.after(clock, 900.0))


def table(found: Sequence[Check]) -> str:
    """The lines of the table."""
    lines = ["| figure | published | model | off by | within |", "|---|---|---|---|---|"]
    for check in found:
        published = check.published
        values = " | ".join(shown(value, published) for value in (published.value, check.model))
        lines.append(f"| {WORDS[published.figure]} | {values} | {check.deviation:+.0%} | {published.within:.0%} |")
    return "\n".join(lines) + "\n"


def shown(value: float, published: Published) -> str:
    """A value with its unit, as the table has it."""
    if published.unit == "1" and value >= 100:
        return f"{value / 1e3:.0f} k/s"
    if published.unit == "1" and not published.figure.endswith(".depth8.ratio"):
        return f"{value:.1%}"
    return format_quantity(value, published.unit)


if __name__ == "__main__":
    PAGE.write_text(with_between(PAGE, BEGIN, table(checks())), encoding="utf-8")
