"""The reference page of health: every rule as in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rackloop.inspection.health import BOOT_ID, COUNTERS, KERNEL_MESSAGES, MISSING, UNREACHABLE, Rule
from tests.meta.tree import ROOT, check

PAGE = (ROOT / "docs" / "reference" / "health.md").read_text(encoding="utf-8").splitlines()
RULES = (*COUNTERS.values(), *KERNEL_MESSAGES.values(), BOOT_ID, MISSING, UNREACHABLE)


def rules_missing(rules: Iterable[Rule]) -> Iterator[str]:
    """Rows of rules that the page lacks."""
    for rule in rules:
        row = f"| `{rule.name}` | {rule.meaning} | {rule.cause} | {', '.join(sorted(rule.excused_by)) or 'nothing'} |"
        if row not in PAGE:
            yield f"docs/reference/health.md: add or correct {row}"


def test_the_page_has_the_rules() -> None:
    check(rules_missing(RULES))


def test_a_missing_rule_is_found() -> None:
    assert len(list(rules_missing([MISSING, replace(MISSING, meaning="something else")]))) == 1
