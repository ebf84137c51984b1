"""The plan of rebuilds: what a store has to be after one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, ProductFailed
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


def require_gone(*, answers: bool) -> None:
    clock = VirtualClock()

    def run(argv: tuple[str, ...], deadline: Deadline) -> None:
        assert argv == ("true",)
        if not answers:
            raise DeadlineExceeded(f"no answer in {deadline.remaining_s():g} s")

    rack = SimpleNamespace(
        bench=SimpleNamespace(host=lambda _server: SimpleNamespace(run=run)),
        deadline=lambda seconds: Deadline.after(clock, seconds),
        lab=SimpleNamespace(time_s=lambda _name: 3.0),
    )
    REBUILD._require_gone(rack, "srv1")


def test_a_server_that_was_to_fail_is_asked() -> None:
    require_gone(answers=False)
    with pytest.raises(LabError, match="srv1 was to fail and still answers"):
        require_gone(answers=True)


def await_loss(*, missing: tuple[str, ...], answers: bool) -> None:
    clock = VirtualClock()

    def read(_offset: int, length: int) -> bytes:
        if not answers:
            raise NotConnected("the drive is dead")
        return bytes(length)

    storage = SimpleNamespace(
        rack=SimpleNamespace(deadline=lambda: Deadline.after(clock, 1.0)),
        store=SimpleNamespace(recovery_state=lambda: SimpleNamespace(missing=missing)),
        region_of=lambda _drive: SimpleNamespace(read=read),
        sleep=clock.advance,
    )
    REBUILD._await_loss(storage, "d1")


def test_a_drive_is_lost_when_the_store_gave_it_up() -> None:
    await_loss(missing=("d1",), answers=True)


def test_a_drive_that_no_object_of_the_tenant_is_on_is_lost_when_it_does_not_answer() -> None:
    await_loss(missing=(), answers=False)


def test_a_drive_that_was_to_fail_and_answers_is_the_labs_fault() -> None:
    with pytest.raises(LabError, match="still answers its server"):
        await_loss(missing=("d2",), answers=True)
