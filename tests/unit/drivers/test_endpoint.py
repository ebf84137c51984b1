"""Addresses of boxes, as people write them."""

from __future__ import annotations

import pytest

from rackloop.errors import BadInput
from rackloop_drivers.endpoint import host_and_port


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("bmc.lab.example", ("bmc.lab.example", 623)),
        ("10.0.0.1:16", ("10.0.0.1", 16)),
        ("fe80::1", ("fe80::1", 623)),
        ("fe80::1%eth0", ("fe80::1%eth0", 623)),
        ("[fe80::1]", ("fe80::1", 623)),
        ("[fe80::1%eth0]:16", ("fe80::1%eth0", 16)),
    ],
)
def test_an_address_has_a_host_and_perhaps_a_port(address: str, parts: tuple[str, int]) -> None:
    assert host_and_port(address, 623) == parts


@pytest.mark.parametrize(
    "address", ["", ":1", "a:0", "a:65536", "a:b", "a:1:2", "u@a", "a/b", "[fe80::1", "https://a", "a..b"]
)
def test_anything_else_is_refused_by_its_name(address: str) -> None:
    with pytest.raises(BadInput, match="is no address") as caught:
        host_and_port(address, 623)
    assert repr(address) in str(caught.value)
