"""The table of remaps: every stage that was seen, on a mock rack and by a server's kernel."""

from __future__ import annotations

import csv
from types import SimpleNamespace
from typing import Any, cast

from rackloop.record import RemapSeen, Stage
from rackloop_reports.attachments import remaps_csv

RUN = cast("Any", SimpleNamespace(started_ns=1000, is_simulated=False))


def test_stages_of_a_kernel_are_told_with_what_is_not_known_of_its_clock() -> None:
    stages = [
        Stage("commanded", 2000, "harness", 5),
        Stage("link", 3000, "kernel", 40),
        Stage("online", 4000, "kernel", 40),
        Stage("verified", 5000, "rackprobe", 60),
    ]
    text = remaps_csv([RemapSeen("t", "vanilla", "srv1", "p0", "d01", 7, stages)], RUN)
    (row,) = csv.DictReader(text.splitlines())
    assert (row["simulated"], row["stack"], row["generation"]) == ("no", "vanilla", "7")
    assert (row["link_ns"], row["link_error_ns"], row["link_clock"]) == ("2000", "40", "kernel")
    assert (row["verified_ns"], row["verified_error_ns"]) == ("4000", "60")
    assert (row["named_ns"], row["phy_up_ns"]) == ("", "")
    # Whoever reads columns by their place finds them there.
    assert list(row)[6:9] == ["commanded_ns", "commanded_error_ns", "commanded_clock"]
    assert list(row)[24:27] == ["verified_ns", "verified_error_ns", "verified_clock"]
