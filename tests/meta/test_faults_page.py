"""The reference page of faults has every kind, parameter and explanation as it is."""

from __future__ import annotations

import pytest

from rackloop.faults import KINDS, FaultKind
from rackloop.inspection.health._faults import BROKEN_BY
from tests.meta.tree import ROOT

PAGE = (ROOT / "docs" / "reference" / "faults.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_page_has_the_kind_and_its_parameters(kind: FaultKind) -> None:
    of = ", ".join(sorted(kind.targets))
    assert f"| `{kind.name}` | {kind.does} | {of} | {'yes' if kind.endangers_data else 'no'} |" in PAGE
    for name, parameter in kind.parameters.items():
        rows = [line for line in PAGE if line.startswith(f"| `{kind.name}` | `{name}` |")]
        assert len(rows) == 1
        assert rows[0].endswith(f"| {parameter.meaning} |")


@pytest.mark.parametrize("kind", BROKEN_BY)
def test_the_page_has_what_the_fault_explains(kind: str) -> None:
    rules = ", ".join(f"`{rule}`" for rule in sorted(BROKEN_BY[kind]))
    assert f"| `{kind}` | {rules} |" in PAGE
