"""Identified sectors made and told apart in numpy: rackprobe's format, and rackprobe's verdicts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop.native import find_binary
from rackloop_oracles.recovery._content import Content, Found, found_in
from rackloop_oracles.recovery._sectors import SECTOR_BYTES, U64, Identity

MINE = Identity("RL000001", 5)
LBA = 77
GENERATION = 3


def numbers(*values: int) -> U64:
    return np.array(values, np.uint64)


def sector(identity: Identity = MINE, lba: int = LBA, generation: int = GENERATION) -> bytearray:
    return bytearray(identity.content(numbers(lba), numbers(generation)))


def look(content: bytes | bytearray) -> Found | None:
    rows = np.frombuffer(bytes(content), np.uint64).reshape(1, -1)
    return next((found for _, found in found_in(MINE, rows, numbers(LBA), numbers(GENERATION))), None)


def content_of(content: bytes | bytearray) -> Content | None:
    found = look(content)
    return found.content if found else None


def test_the_crc_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@settings(max_examples=30)
@given(
    serial=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=44),
    seed=st.integers(0, 2**64 - 1),
    lba=st.integers(0, 2**64 - 1),
    generation=st.integers(0, 2**64 - 1),
)
def test_a_sector_ends_with_the_crc_of_the_rest(serial: str, seed: int, lba: int, generation: int) -> None:
    made = bytes(sector(Identity(serial, seed), lba, generation))
    assert crc32c(made[:4092]) == int.from_bytes(made[4092:], "little")


def test_rackprobe_reads_what_was_made_as_its_own(tmp_path: Path) -> None:
    image = tmp_path / "image"
    lbas = np.arange(600, dtype=np.uint64)
    image.write_bytes(MINE.content(lbas, np.full(600, GENERATION, np.uint64)))
    probe = [str(find_binary("rackprobe")), "verify", str(image), "--serial", "RL000001", "--sectors", "600"]
    done = subprocess.run([*probe, "--generation", "3", "--seed", "5"], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["verdicts"]["right"] == 600, done.stderr


def test_the_bytes_are_those_that_rackprobe_writes(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(4 * SECTOR_BYTES))
    probe = [str(find_binary("rackprobe")), "write", str(image), "--serial", "RL000001", "--allow-write", "RL000001"]
    given = ["--sectors", "4", "--generation", "3", "--seed", "5"]
    subprocess.run([*probe, *given], capture_output=True, text=True, check=True)
    assert image.read_bytes() == MINE.content(numbers(0, 1, 2, 3), np.full(4, 3, np.uint64))


@pytest.mark.parametrize(
    ("identity", "lba", "generation", "content"),
    [
        (MINE, LBA, GENERATION, None),
        (MINE, LBA, 2, Content.STALE),
        (MINE, LBA, 4, Content.NEWER),
        (MINE, LBA + 1, GENERATION, Content.MISPLACED),
        (Identity("RL000001", 6), LBA, GENERATION, Content.OTHER_RUN),
        (Identity("RL000002", 5), LBA, GENERATION, Content.OTHER_RUN),
    ],
)
def test_every_whole_sector_is_named(identity: Identity, lba: int, generation: int, content: Content | None) -> None:
    found = look(sector(identity, lba, generation))
    if content is None:
        assert found is None
    else:
        assert found == Found(content, identity.serial, lba, generation, identity.seed)


def test_zeros_are_blank_and_other_data_is_foreign() -> None:
    assert content_of(bytes(SECTOR_BYTES)) is Content.BLANK
    assert content_of(b"U" * SECTOR_BYTES) is Content.FOREIGN


@pytest.mark.parametrize("tear", range(88, 4076, 212))
def test_a_tear_behind_the_header_is_torn_of_both_generations(tear: int) -> None:
    torn = sector()
    torn[tear:] = sector(generation=2)[tear:]
    found = look(torn)
    assert found is not None
    assert (found.content, found.generations, found.is_stray) == (Content.TORN, (2, 3), False)


def test_a_tear_with_another_place_is_a_stray() -> None:
    torn = sector()
    torn[2048:] = sector(lba=LBA + 1)[2048:]
    found = look(torn)
    assert found is not None
    assert (found.content, found.is_stray) == (Content.TORN, True)


def test_a_first_write_that_stopped_half_way_is_torn_with_nothing() -> None:
    begun = sector()
    begun[2048:] = bytes(2048)
    found = look(begun)
    assert found is not None
    assert (found.content, found.generations) == (Content.TORN, (0, 3))


@pytest.mark.parametrize("bit", range(0, SECTOR_BYTES * 8, 1009))
def test_any_flipped_bit_is_corrupt_and_never_right(bit: int) -> None:
    flipped = sector()
    flipped[bit // 8] ^= 1 << (bit % 8)
    assert content_of(flipped) is Content.CORRUPT


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["right", "stale", "blank", "flipped"]), min_size=1, max_size=40))
def test_each_of_many_is_told_apart(kinds: list[str]) -> None:
    count = len(kinds)
    lbas, generations = np.arange(count, dtype=np.uint64), np.full(count, GENERATION, np.uint64)
    written = np.array([2 if kind == "stale" else GENERATION for kind in kinds], np.uint64)
    rows = np.frombuffer(MINE.content(lbas, written), np.uint64).reshape(count, -1).copy()
    rows[[kind == "blank" for kind in kinds]] = 0
    rows[[kind == "flipped" for kind in kinds], 300] ^= np.uint64(1)
    named = {"stale": Content.STALE, "blank": Content.BLANK, "flipped": Content.CORRUPT}
    expected = {number: named[kind] for number, kind in enumerate(kinds) if kind != "right"}
    found = {number: found.content for number, found in found_in(MINE, rows, lbas, generations)}
    assert found == expected


def test_more_than_are_made_at_once_are_made_right() -> None:
    lbas = np.arange(2500, dtype=np.uint64)
    content = MINE.content(lbas, lbas + np.uint64(1))
    for lba in (0, 1023, 1024, 2047, 2048, 2499):
        assert content[lba * SECTOR_BYTES :][:SECTOR_BYTES] == bytes(sector(MINE, lba, lba + 1))


def test_a_name_that_cannot_be_stamped_is_refused() -> None:
    for serial in ("", "tab\there", "é", "x" * 45):
        with pytest.raises(BadInput, match="cannot be stamped"):
            Identity(serial, 1)
    with pytest.raises(BadInput, match="seed"):
        Identity("x", -1)
