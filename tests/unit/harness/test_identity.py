"""Identifiers: one spelling for what drives, kernels and descriptions spell in their own ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.drive_identifiers import IDENTIFIERS, normal_identifier, normal_text


@pytest.mark.parametrize(
    ("kind", "value", "normal"),
    [
        ("wwn", "5000c50000000abc", "5000c50000000abc"),
        ("wwn", "0x5000c50000000abc", "5000c50000000abc"),
        ("wwn", "naa.5000C50000000ABC", "5000c50000000abc"),
        ("wwn", "wwn-0x5000c50000000abc", "5000c50000000abc"),
        ("wwn", "50:00:c5:00:00:00:0a:bc", "5000c50000000abc"),
        ("wwn", "5 000c50 000000abc", "5000c50000000abc"),
        ("wwn", "naa.600508b1001c79ad0000000000000001", "600508b1001c79ad0000000000000001"),
        ("eui64", "eui.0025385b71b00001", "0025385b71b00001"),
        ("eui64", "00-25-38-5B-71-B0-00-01", "0025385b71b00001"),
        ("eui64", "0000000000000000", None),
        ("nguid", "eui.0025385b71b000010000000000000001", "0025385b71b000010000000000000001"),
        ("nguid", "0" * 32, None),
        ("by_path", "/dev/disk/by-path/pci-0000:00:1f.2-ata-2", "pci-0000:00:1f.2-ata-2"),
        ("by_path", "pci-0000:00:1f.2-ata-2", "pci-0000:00:1f.2-ata-2"),
        ("slot", "03", "3"),
        ("slot", " Slot 03 ", "Slot 03"),
        ("slot", "", None),
    ],
)
def test_one_spelling(kind: str, value: str, normal: str | None) -> None:
    assert normal_identifier(kind, value) == normal


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("wwn", "5000c50000000ab"),
        ("wwn", "5000c50000000abg"),
        ("wwn", "t10.ATA     QEMU HARDDISK"),
        ("eui64", "0025385b71b000010000000000000001"),
        ("nguid", "0025385b71b00001"),
        ("colour", "blue"),
    ],
)
def test_what_is_no_identifier_is_refused(kind: str, value: str) -> None:
    with pytest.raises(ValueError, match=kind):
        normal_identifier(kind, value)


@given(kind=st.sampled_from(IDENTIFIERS), value=st.text(max_size=40))
def test_a_normal_identifier_is_its_own_spelling(kind: str, value: str) -> None:
    try:
        normal = normal_identifier(kind, value)
    except ValueError:
        return
    if normal is not None:
        assert normal_identifier(kind, normal) == normal


@given(digits=st.text("0123456789abcdef", min_size=16, max_size=16).filter(lambda text: text.strip("0")))
def test_different_names_stay_different(digits: str) -> None:
    assert normal_identifier("wwn", f"0x{digits.upper()}") == digits


def test_padding_is_no_part_of_a_model_or_a_serial_number() -> None:
    assert normal_text("  QEMU     HARDDISK   ") == "QEMU HARDDISK"
    assert normal_text("00123456") != normal_text("123456")
