"""The reference page of health has every rule as it is."""

from __future__ import annotations

import pytest

from rackloop.inspection.health import BOOT_ID, COUNTERS, KERNEL_MESSAGES, MISSING, UNREACHABLE, Rule
from tests.meta.tree import ROOT

PAGE = (ROOT / "docs" / "reference" / "health.md").read_text(encoding="utf-8").splitlines()
RULES = (*COUNTERS.values(), *KERNEL_MESSAGES.values(), BOOT_ID, MISSING, UNREACHABLE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_page_has_the_rule(rule: Rule) -> None:
    excused = ", ".join(sorted(rule.excused_by)) or "nothing"
    assert f"| `{rule.name}` | {rule.meaning} | {rule.cause} | {excused} |" in PAGE
