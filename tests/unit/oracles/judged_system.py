"""A campaign on a system under test, and the recovery oracle's result."""

from __future__ import annotations

from collections.abc import Callable

from rackloop.clock import Deadline, RealClock
from rackloop_oracles.recovery import (
    Campaign,
    CampaignPlan,
    Eraser,
    Progress,
    RecoveryOracle,
    RecoveryResult,
    SystemUnderTest,
)


def judged(
    system: SystemUnderTest,
    eraser: Eraser | None,
    plan: CampaignPlan,
    *,
    limit_s: float = 60.0,
    seconds: float = 120.0,
    progress: Callable[[Progress], None] = lambda _: None,
    cut_power: Callable[[], None] | None = None,
) -> RecoveryResult:
    """What comes of a campaign that has ``seconds``, and each call of the system ``limit_s``."""
    deadline = Deadline.after(RealClock(), seconds)
    with RecoveryOracle(system, deadline, seed=plan.seed, call_limit_s=limit_s) as oracle:
        return Campaign(oracle, eraser, plan, progress, cut_power=cut_power).run()
