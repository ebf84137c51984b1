"""Figures of `rackloop model tenancy`: what their captions say of seeds and times."""

from __future__ import annotations

from rackloop_cli.model.tenancy_files import _time_lines
from rackloop_cli.model.tenancy_results import Series, Sweeps, TenancyRequest, TenancyResults
from rackloop_models.tenancy import TimeLine

FIVE_SEEDS = TenancyRequest(
    file=None,
    scenarios=(),
    conditions=(),
    schedulers=(),
    counts=(),
    seconds=0.5,
    warm_up_s=1.8,
    profile="nvme-ssd",
    size="4 GiB",
    seed=1,
    seeds=5,
    with_sweeps=False,
    out=None,
    as_json=False,
)


def test_gimbal_over_time_is_of_one_seed_and_has_a_time_of_its_own() -> None:
    points = ((0.0, 1.0), (4.0, 2.0))
    lines = (TimeLine("clean", {"reads": points}, {"reads": points}, points),)
    found = TenancyResults(
        profile="nvme-ssd",
        like="a drive",
        size_bytes=4 << 30,
        request=FIVE_SEEDS,
        outcomes=(),
        claims=(),
        series=Series(time_lines=lines),
        sweeps=Sweeps(),
    )
    caption = " ".join(" ".join(text.get_text() for text in _time_lines(found).texts).split())
    assert caption.endswith("writers of 4 KiB from 1 s to 3 s. nvme-ssd, 4 GiB, seed 1, in virtual time.")
    assert "after" not in caption
    assert "seeds" not in caption
