"""The plan of recoveries: how much of a store is put under test."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.plan_modules import plan_module
from tests.unit.models.striped_drives import case

RECOVERY = plan_module("erasure/recovery")


@pytest.mark.parametrize(("asked", "got"), [(1, 1), (10_000, 8)])
def test_no_more_objects_are_asked_for_than_fit(asked: int, got: int) -> None:
    stripes = case(2, 1, 6, places=4)
    with stripes.open() as store:
        assert store.objects == 8
        system = RECOVERY._stripes_of(
            SimpleNamespace(store=store, regions=stripes.drives), {"k": 2, "m": 1, "objects": asked}
        )
        assert system.describe().blocks == got
