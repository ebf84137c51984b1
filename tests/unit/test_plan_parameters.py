"""What is said of a parameter of a test that cannot be."""

from __future__ import annotations

import pytest

from rackloop.errors import BadInput
from rackloop_fixtures import code_of, require_among, require_counts


def test_a_code_is_k_and_m() -> None:
    assert code_of("246+9") == (246, 9)


@pytest.mark.parametrize("text", ["", "246", "246+", "+9", "6x2", "0+2", "6+0", "-6+2", "6+2+1"])
def test_what_is_no_code_is_named_with_what_one_looks_like(text: str) -> None:
    with pytest.raises(BadInput, match=r"codes: expected k\+m, such as 246\+9, found"):
        code_of(text)


def test_a_count_below_the_least_is_named() -> None:
    require_counts({"trials": 1, "sectors": 2, "beyond": 0}, "trials", "sectors")
    require_counts({"beyond": 0}, "beyond", least=0)
    with pytest.raises(BadInput, match="sectors: expected 1 or more, found 0"):
        require_counts({"trials": 1, "sectors": 0}, "trials", "sectors")
    with pytest.raises(BadInput, match="beyond: expected 0 or more, found -1"):
        require_counts({"beyond": -1}, "beyond", least=0)


def test_what_is_not_known_is_named_with_what_is() -> None:
    require_among({"policies": ["move"]}, "policies", ["move", "rebuild"])
    with pytest.raises(BadInput, match="policies: expected some of move, rebuild, found foo"):
        require_among({"policies": ["move", "foo"]}, "policies", ["rebuild", "move"])
    with pytest.raises(BadInput, match="found nothing"):
        require_among({"policies": []}, "policies", ["rebuild", "move"])
