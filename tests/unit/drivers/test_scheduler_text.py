"""`--scheduler KIND[:NAME=VALUE,...]`: numbers, lists and groups, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop_drivers.storage_switch import scheduler_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", {}),
        ("gimbal:thresh_max_us=2000,beta=1.5", {"thresh_max_us": 2000, "beta": 1.5}),
        (
            "gimbal:priority_quotas=[16,4,2,1],virtual_slots=16",
            {"priority_quotas": [16, 4, 2, 1], "virtual_slots": 16},
        ),
        ("gimbal:priority_quotas=null", {"priority_quotas": None}),
        (
            "flashfq:read_cost.base_us=3,read_cost.per_kib_us=0.5",
            {"read_cost": {"base_us": 3, "per_kib_us": 0.5}},
        ),
        (
            'reflex:curve=[{"p95_us":500,"tokens_per_s":1,"read_only_tokens_per_s":2}],threads=4',
            {"curve": [{"p95_us": 500, "tokens_per_s": 1, "read_only_tokens_per_s": 2}], "threads": 4},
        ),
    ],
)
def test_parameters_are_those_of_the_option(text: str, expected: dict[str, Any]) -> None:
    kind = text.partition(":")[0]
    assert scheduler_of(text, "--scheduler") == {"kind": kind, **expected}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gimbl", "did you mean 'gimbal'?"),
        ("gimbal:beta", "'beta' is not NAME=VALUE"),
        ("gimbal:=3", "'=3' is not NAME=VALUE"),
        ("gimbal:a..b=3", "'a..b=3' is not NAME=VALUE"),
        ("gimbal:beta=high", "'high', the value of beta, is not JSON"),
        ("gimbal:beta=NaN", "'NaN', the value of beta, is not JSON"),
        ("gimbal:priority_quotas=[16,4", "'[16,4', the value of priority_quotas, is not JSON"),
        ("flashfq:read_cost=1,read_cost.base_us=3", "read_cost has a value already"),
        ('gimbal:kind="none"', "kind is no parameter; the scheduler is gimbal, which stands before the colon"),
        ("gimbal:kind.of=1", "kind is no parameter; the scheduler is gimbal, which stands before the colon"),
        ("gimbal:beta=2,alpha_d=0.5,beta=2", "beta is given twice; give it once"),
        ("flashfq:read_cost.base_us=1,read_cost.base_us=2", "read_cost.base_us is given twice"),
        ("flashfq:read_cost.base_us=1,read_cost={}", "read_cost is given twice"),
        ('flashfq:read_cost={"base_us":1},read_cost.base_us=3', "read_cost.base_us is given twice"),
        ('flashfq:read_cost={"base_us":1,"base_us":2}', "read_cost: base_us is given twice"),
        ("gimbal:virtual_slots=1e999", "virtual_slots: 1e999 is infinite; give a finite number"),
        ("gimbal:priority_quotas=[16,4,2,-1e999]", "priority_quotas: -1e999 is infinite"),
    ],
)
def test_a_mistake_is_told(text: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        scheduler_of(text, "--scheduler")
    assert said in str(refused.value)
