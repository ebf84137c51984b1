"""Write the table of boxes into docs/explanations/drive-models.md, from the profiles and the model.

``python tools/box_reference.py``, in the environment of the tests with drivesim built, after a change to boxes, to
their profiles or to the model of their drives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from generated import with_between
from rackloop.clock import Deadline, RealClock
from rackloop.units import format_quantity
from rackloop_drivers.host import LocalExecutor
from rackloop_models.drives import BoxCheck, BoxFigure, box_checks, box_names, load_box

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanations" / "drive-models.md"
SIZE_BYTES, SEED = 1 << 30, 1
BEGIN = "<!-- Written by tools/box_reference.py from the profiles and the model. -->\n"
WORDS = {
    "randread.latency.average.4KiB": "unloaded read of 4 KiB",
    "randread.drive.share.4KiB": "share of the drive in a read of 4 KiB",
    "randread.drive.share.128KiB": "share of the drive in a read of 128 KiB",
    "randread.excess.to64KiB": "unloaded reads up to 64 KiB take more than on the server, mean",
    "randread.excess.128KiB": "unloaded reads of 128 KiB take more than on the server",
    "randread.excess.256KiB": "unloaded reads of 256 KiB take more than on the server",
    "seqwrite.excess.latency.average": "unloaded sequential writes take longer than on the server, mean",
    "randread.iops.cores2.4KiB": "random reads of 4 KiB with 2 cores",
    "randread.iops.cores3.4KiB": "random reads of 4 KiB with 3 cores",
    "seqwrite.iops.cores2.4KiB": "sequential writes of 4 KiB with 2 cores",
    "seqwrite.iops.cores3.4KiB": "sequential writes of 4 KiB with 3 cores",
    "randread.onecore.share.128KiB": "one core's share of what 8 cores do in reads of 128 KiB",
}


def checks() -> dict[str, tuple[BoxCheck, ...]]:
    """Every published figure of every box beside the model's."""
    clock = RealClock()
    profiles = [load_box(name) for name in box_names()]
    with LocalExecutor(clock) as executor:
        return box_checks(executor, profiles, Deadline.after(clock, 900.0), size_bytes=SIZE_BYTES, seed=SEED)


def table(found: Mapping[str, Sequence[BoxCheck]]) -> str:
    """The lines of the table, and the reasons below it."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Sequence[BoxCheck]]) -> Iterator[str]:
    yield "| box | figure | published | model | within | verdict |"
    yield "|---|---|---|---|---|---|"
    for name, one in found.items():
        for check in one:
            published = check.published
            values = " | ".join(shown(value, published) for value in (published.value, check.model))
            verdict = "met" if check.is_met else "differs"
            yield f"| `{name}` | {WORDS[published.figure]} | {values} | {published.within:.0%} | {verdict} |"
    yield ""
    reasons: dict[str, list[str]] = {}
    for one in found.values():
        for check in one:
            if check.published.differs is not None:
                reasons.setdefault(check.published.differs, []).append(WORDS[check.published.figure])
    for reason, figures in reasons.items():
        yield f"- {'; '.join(dict.fromkeys(figures))}: {reason}."


def shown(value: float, published: BoxFigure) -> str:
    """A value with its unit, as the table has it."""
    if published.unit != "1":
        return format_quantity(value, published.unit)
    return f"{value / 1e3:.0f} k/s" if value >= 100 else f"{value:.1%}"


if __name__ == "__main__":
    PAGE.write_text(with_between(PAGE, BEGIN, table(checks())), encoding="utf-8")
