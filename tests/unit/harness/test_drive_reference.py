"""The reference of the drive models names every profile, parameter and published figure there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rackloop.lab import load_profile, profile_names
from rackloop.units import format_quantity

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "drive-models.md"


def names(timing: Mapping[str, Any], within: str = "") -> Iterator[str]:
    for name, value in timing.items():
        yield f"{within}{name}"
        if isinstance(value, dict):
            yield from names(value, f"{name}.")


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_is_described(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    profile = load_profile(name)
    assert f"| `{name}` | {profile.protocol} | `{profile.timing['kind']}` | {profile.like} |" in page
    # What takes no time of its own has no curves.
    if profile.timing["kind"] != "ideal":
        assert (PAGE.parent / "images" / f"curves-{name}.svg").is_file()
        assert f"(images/curves-{name}.svg)" in page
    missing = [parameter for parameter in names(profile.timing) if parameter != "kind" and f"`{parameter}`" not in page]
    assert not missing


@pytest.mark.parametrize("name", profile_names())
def test_its_published_figures_are_those_of_the_profile(name: str) -> None:
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith(f"| `{name}` | `")]
    found = [row.strip("| ").split(" | ") for row in rows if row.count(" | ") == 6]
    profile = load_profile(name)
    expected = [
        (f"`{entry.figure}`", shown(entry.value, entry.unit), f"{entry.within:.0%}", entry.source)
        for entry in profile.published
    ]
    assert [(figure, value, within, source) for _, figure, value, _, _, within, source in found] == expected


def shown(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit == "1" and value >= 100 else format_quantity(value, unit)
