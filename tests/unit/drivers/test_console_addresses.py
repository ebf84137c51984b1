"""The addresses that a console may have in a description."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rackloop_drivers.console import Ser2netConsoleDriver


def described(port: int) -> Ser2netConsoleDriver:
    return Ser2netConsoleDriver.model_validate({"driver": "ser2net", "address": f"rfc2217://c:{port}"})


@pytest.mark.parametrize("port", [1, 9999, 59_999, 60_000, 64_999, 65_000, 65_499, 65_500, 65_529, 65_530, 65_535])
def test_a_ser2net_may_be_at_every_port(port: int) -> None:
    assert described(port).address == f"rfc2217://c:{port}"


@pytest.mark.parametrize("port", [0, 65_536, 65_540, 65_600, 66_000, 70_000, 100_000])
def test_a_ser2net_is_at_no_other(port: int) -> None:
    with pytest.raises(ValidationError, match="expected 'host:port'"):
        described(port)
