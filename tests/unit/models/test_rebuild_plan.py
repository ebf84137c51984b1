"""The plan of rebuilds: what a store has to be after one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from rackloop.errors import ProductFailed
from rackloop_models.rack_erasure import Health, ScrubReport, StripeCode
from tests.plan_modules import plan_module

REBUILD = plan_module("erasure/rebuild")
WHOLE = ScrubReport(2, 12, 0, 0, 0, 0, 0, 0, (), ())


def require_whole(scrubbed: ScrubReport, health: Health = Health.HEALTHY) -> None:
    store = SimpleNamespace(
        scrub=lambda *, repair: replace(scrubbed, repaired=int(repair)),
        recovery_state=lambda: SimpleNamespace(health=health),
    )
    tenant = SimpleNamespace(wrong=[], refused=0, require_right=lambda: None)
    storage = SimpleNamespace(store=store, code=StripeCode(4, 2, 4096))
    REBUILD._require_whole(storage, tenant, lambda *_args, **_labels: None, policy="move")


def test_a_store_with_every_unit_is_whole() -> None:
    require_whole(WHOLE)


@pytest.mark.parametrize(
    ("scrubbed", "health"),
    [
        (replace(WHOLE, units=11), Health.HEALTHY),
        (WHOLE, Health.DEGRADED),
        (replace(WHOLE, mismatched=(1,)), Health.HEALTHY),
        (replace(WHOLE, lost=(0,)), Health.HEALTHY),
    ],
    ids=["a unit less", "degraded", "no codeword", "lost"],
)
def test_a_store_that_lacks_anything_fails(scrubbed: ScrubReport, health: Health) -> None:
    with pytest.raises(ProductFailed, match="a scrub found"):
        require_whole(scrubbed, health)
