"""The ledger of a mock rack's faults: what it says stands is what its parts were told, however often and by whom."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter

from rackloop.errors import LabError
from rackloop_labs.mock_faults.ledger import FaultLedger, Standing


class Burn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["burn"]
    heat: int = 1


class Stove:
    """A part that remembers every act, and is as hot as all that burns there together."""

    faults = TypeAdapter(Burn)

    def __init__(self) -> None:
        self.heat = 0
        self.acts: list[tuple[str, str]] = []
        self.refuses = False
        self.went_out = False

    async def begin(self, key: str, fault: Burn, standing: Standing) -> None:
        await asyncio.sleep(0)
        if self.refuses:
            raise LabError("it will not burn")
        assert key not in standing
        self.heat += fault.heat
        self.acts.append(("begin", key))

    async def end(self, key: str, fault: Burn, remains: Standing) -> None:
        await asyncio.sleep(0)
        assert key not in remains
        self.heat -= fault.heat
        self.acts.append(("end", key))
        assert self.heat == sum(other.heat for other in remains.values())

    async def found(self, known: Standing) -> Standing:
        await asyncio.sleep(0)
        if self.went_out:
            self.heat, self.went_out = 0, False
            return {}
        unknown = self.heat - sum(fault.heat for fault in known.values())
        return {**known, **({"#burn": Burn(kind="burn", heat=unknown)} if unknown else {})}


def ask(ledger: FaultLedger, **request: Any) -> dict[str, Any]:
    return asyncio.run(ledger.answer(request))


def broken(key: str, heat: int = 1, resource: str = "stove") -> dict[str, Any]:
    return {"op": "break", "resource": resource, "key": key, "fault": {"kind": "burn", "heat": heat}}


def mended(key: str) -> dict[str, Any]:
    return {"op": "mend", "resource": "stove", "key": key}


KEYS = st.sampled_from(["a", "b", "run/1"])
REQUESTS = st.one_of(st.builds(broken, KEYS, st.integers(1, 9)), st.builds(mended, KEYS))


@given(st.lists(st.lists(REQUESTS, min_size=1, max_size=4), max_size=8))
def test_each_key_stands_once_however_often_and_at_once_it_is_asked_for(rounds: list[list[dict[str, Any]]]) -> None:
    """The requests of one round are all made at once, as by several connections."""
    stove = Stove()

    async def live() -> dict[str, Any]:
        ledger = FaultLedger({"stove": stove})
        for requests in rounds:
            answers = await asyncio.gather(*(ledger.answer(request) for request in requests))
            assert all(answer["ok"] for answer in answers)
        shown = await ledger.answer({"op": "standing", "resource": "stove"})
        return dict(shown["standing"]["stove"])

    standing = asyncio.run(live())
    assert stove.heat == sum(fault["heat"] for fault in standing.values())
    begun: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for act, key in stove.acts:
        (begun if act == "begin" else ended)[key] += 1
    assert {key for key in begun if begun[key] > ended[key]} == set(standing)
    assert all(begun[key] - ended[key] in {0, 1} for key in begun)


def test_what_a_part_refuses_does_not_stand() -> None:
    stove = Stove()
    ledger = FaultLedger({"stove": stove})
    stove.refuses = True
    answer = ask(ledger, **broken("a"))
    assert answer == {"ok": False, "error": {"code": "refused", "message": "it will not burn"}}
    assert ask(ledger, op="standing") == {"ok": True, "standing": {}}
    stove.refuses = False
    assert ask(ledger, **broken("a")) == {"ok": True}
    assert stove.heat == 1


def test_what_ended_by_itself_may_be_broken_again_and_is_not_mended() -> None:
    stove = Stove()
    ledger = FaultLedger({"stove": stove})
    ask(ledger, **broken("a"))
    stove.went_out = True
    assert ask(ledger, **mended("a")) == {"ok": True, "mended": False}
    ask(ledger, **broken("a", heat=3))
    assert ask(ledger, op="standing") == {"ok": True, "standing": {"stove": {"a": {"kind": "burn", "heat": 3}}}}


def test_what_was_broken_by_another_way_is_named_and_can_be_mended() -> None:
    stove = Stove()
    ledger = FaultLedger({"stove": stove})
    ask(ledger, **broken("a"))
    stove.heat += 5
    assert set(ask(ledger, op="standing")["standing"]["stove"]) == {"a", "#burn"}
    assert ask(ledger, **mended("#burn")) == {"ok": True, "mended": True}
    assert (stove.heat, set(ask(ledger, op="standing")["standing"]["stove"])) == (1, {"a"})


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (broken("a", resource="stve"), "nothing that can be broken is called 'stve'; did you mean 'stove'?"),
        (broken("a b"), "'a b' is no key"),
        (broken("#burn"), "'#burn' is no key"),
        (broken("a" * 129), "is no key"),
        ({**broken("a"), "fault": {"kind": "burn", "heat": "much"}}, "heat: Input should be a valid integer"),
        ({**broken("a"), "fault": {"kind": "burn", "colour": "red"}}, "colour: Extra inputs are not permitted"),
        ({**broken("a"), "fault": None}, "stove cannot be broken as None"),
        ({"op": "mend", "key": "a"}, "nothing that can be broken is called 'None'"),
    ],
)
def test_what_makes_no_sense_is_said(request_: dict[str, Any], said: str) -> None:
    stove = Stove()
    answer = ask(FaultLedger({"stove": stove}), **request_)
    assert answer["error"]["code"] == "bad_request"
    assert said in answer["error"]["message"]
    assert stove.acts == []
