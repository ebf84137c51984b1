"""The reference page of faults: every kind, parameter and explanation as in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rackloop.faults import KINDS, FaultKind
from rackloop.inspection.health._disturbance import BROKEN_BY
from tests.meta.tree import ROOT, check

PAGE = (ROOT / "docs" / "reference" / "faults.md").read_text(encoding="utf-8").splitlines()


def kinds_missing(kinds: Iterable[FaultKind], page: Sequence[str]) -> Iterator[str]:
    """Rows of kinds and of their parameters that the page lacks."""
    for kind in kinds:
        of = ", ".join(sorted(target.noun for target in kind.targets))
        row = f"| `{kind.name}` | {kind.does} | {of} | {'yes' if kind.endangers_data else 'no'} |"
        if row not in page:
            yield f"docs/reference/faults.md: add or correct {row}"
        for name, parameter in kind.parameters.items():
            rows = [line for line in page if line.startswith(f"| `{kind.name}` | `{name}` |")]
            if len(rows) != 1 or not rows[0].endswith(f"| {parameter.meaning} |"):
                yield f"docs/reference/faults.md: one row | `{kind.name}` | `{name}` | ... | {parameter.meaning} |"


def explanations_missing(broken_by: Mapping[str, Iterable[str]], page: Sequence[str]) -> Iterator[str]:
    """Rows of the health rules that a fault explains which the page lacks."""
    for kind, explained in broken_by.items():
        row = f"| `{kind}` | {', '.join(f'`{rule}`' for rule in sorted(explained))} |"
        if row not in page:
            yield f"docs/reference/faults.md: add or correct {row}"


def test_the_page_has_the_kinds_and_their_parameters() -> None:
    check(kinds_missing(KINDS.values(), PAGE))


def test_the_page_has_what_faults_explain() -> None:
    check(explanations_missing(BROKEN_BY, PAGE))


def test_a_missing_row_is_found() -> None:
    kind = next(kind for kind in KINDS.values() if kind.parameters)
    renamed = replace(kind, name="no_such_fault")
    assert len(list(kinds_missing([kind, renamed], PAGE))) == 1 + len(kind.parameters)
    assert len(list(explanations_missing({"no_such_fault": ["missing"]}, PAGE))) == 1
