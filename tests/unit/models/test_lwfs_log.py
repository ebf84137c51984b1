"""The log on a drive after its writer was lost: all that was whole is found, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.abilities.blocks import BLOCK_BYTES, Part
from rackloop_drivers.block.file_blocks import FileBlocks
from rackloop_models.lwfs import (
    HEADER_BYTES,
    KEY_BYTES,
    Address,
    CountedBlocks,
    Extent,
    FileExists,
    NoRoom,
    NoSuchFile,
    RecordDamaged,
    Rights,
    StorageServer,
    Tail,
    Token,
    TokenRefused,
)
from tests.memory_blocks import MemoryBlocks
from tests.unit.models.lwfs_rack import SmallRack

payloads = st.lists(st.binary(min_size=0, max_size=9000), min_size=1, max_size=5)
FIRST_BLOCK = 1
KEY_OF_D1 = bytes([1]) * KEY_BYTES
FLIPPED = bytes(byte ^ 0xFF for byte in range(256))


def written(rack: SmallRack, appended: list[bytes]) -> list[Address]:
    file = rack.client().open("notes")
    return [file.append(payload) for payload in appended]


def ends(addresses: list[Address], rack: SmallRack) -> list[int]:
    """The byte behind each record's payload: what is behind it is padding."""
    file = rack.client().open("notes")
    assert [len(file.read(address)) for address in addresses] == [address.length for address in addresses]
    return [address.block * BLOCK_BYTES + HEADER_BYTES + address.length for address in addresses]


@settings(max_examples=60, deadline=None)
@given(appended=payloads, data=st.data())
def test_a_log_cut_anywhere_is_found_to_its_last_whole_record(appended: list[bytes], data: st.DataObject) -> None:
    rack = SmallRack()
    old = data.draw(st.binary(min_size=1, max_size=64)) * (32 * BLOCK_BYTES)
    content = rack.memory["d1"].content
    content[FIRST_BLOCK * BLOCK_BYTES : 33 * BLOCK_BYTES] = old[: 32 * BLOCK_BYTES]
    addresses = written(rack, appended)
    behind = ends(addresses, rack)
    for cut in cuts(behind, data):
        image = SmallRack()
        image.memory["d1"].content[:cut] = content[:cut]
        image.memory["d1"].content[cut:] = content[cut:].translate(FLIPPED)
        found = image.client().open("notes").recover()
        assert found.records == tuple(address for address, end in zip(addresses, behind, strict=True) if end <= cut)


def cuts(behind: list[int], data: st.DataObject) -> list[int]:
    """Every edge of every record, and a few places between."""
    edges = {place for end in behind for place in (end - 1, end, end + 1)}
    start = FIRST_BLOCK * BLOCK_BYTES
    drawn = data.draw(st.lists(st.integers(start, behind[-1]), max_size=5))
    return sorted(edges | {start, start + 1, start + 39} | set(drawn))


def test_a_small_log_cut_at_every_byte_is_found_to_its_last_whole_record() -> None:
    rack = SmallRack()
    addresses = written(rack, [b"one", b"", b"three" * 20])
    behind = ends(addresses, rack)
    content = bytes(rack.memory["d1"].content)
    image = SmallRack()
    file = image.client().open("notes")
    for address, end in zip(addresses, behind, strict=True):
        for cut in range(address.block * BLOCK_BYTES, end + 1):
            image.memory["d1"].content[BLOCK_BYTES:cut] = content[BLOCK_BYTES:cut]
            whole = tuple(a for a, e in zip(addresses, behind, strict=True) if e <= cut)
            assert file.recover().records == whole, cut


@given(appended=payloads, resumed=payloads)
@settings(max_examples=40, deadline=None)
def test_a_writer_goes_on_where_the_log_was_whole(appended: list[bytes], resumed: list[bytes]) -> None:
    rack = SmallRack()
    addresses = written(rack, appended)
    last = addresses[-1]
    rack.memory["d1"].content[last.block * BLOCK_BYTES + 8] ^= 1
    file = rack.client().open("notes")
    assert file.recover().records == tuple(addresses[:-1])
    after = [file.append(payload) for payload in resumed]
    assert rack.client().open("notes").recover().records == (*addresses[:-1], *after)
    assert [file.read(address) for address in after] == resumed


def test_what_an_earlier_writer_left_behind_a_torn_record_does_not_come_back() -> None:
    rack = SmallRack()
    first, second, third = written(rack, [b"one", b"two", b"three"])
    rack.memory["d1"].content[second.block * BLOCK_BYTES + 41] ^= 1
    file = rack.client().open("notes")
    file.recover()
    replaced = file.append(b"TWO")
    assert replaced.block == second.block
    assert rack.client().open("notes").recover().records == (first, replaced)
    assert third not in rack.client().open("notes").recover().records


def test_a_file_does_not_read_what_another_file_left_in_its_extent() -> None:
    rack = SmallRack()
    address = written(rack, [b"secret"])[0]
    rack.metadata.create("next", "d1", 16)
    next_file = rack.client().open("next").append(b"public")
    token = Token(b"n" * 16, Extent(1, 48), Rights.READ, 2_000).signed(KEY_OF_D1)
    with pytest.raises(RecordDamaged, match="no record of this file"):
        rack.servers["s1"].read("d1", token, address)
    assert next_file.block == 33


@pytest.mark.parametrize("place", [4, 20, 35, 41])
def test_a_record_that_changed_on_the_drive_is_not_served(place: int) -> None:
    rack = SmallRack()
    address = written(rack, [b"hello, world"])[0]
    rack.memory["d1"].content[address.block * BLOCK_BYTES + place] ^= 1
    with pytest.raises(RecordDamaged):
        rack.client().open("notes").read(address)


def test_a_log_that_fills_its_extent_is_found_whole() -> None:
    rack = SmallRack()
    addresses = written(rack, [b"x"] * 32)
    found = rack.client().open("notes").recover()
    assert found.records == tuple(addresses)
    assert found.tail.block == 33


def test_a_record_that_leaves_the_extent_is_not_of_it() -> None:
    rack = SmallRack()
    client = rack.client()
    client.open("notes").append(b"x" * 5000)
    whole = Token.checked(client.grant("notes", Rights.READ | Rights.APPEND).token, KEY_OF_D1)
    short = Token(whole.file_id, Extent(1, 1), Rights.READ, 2_000).signed(KEY_OF_D1)
    assert rack.servers["s1"].recover("d1", short).records == ()


def test_an_append_that_must_stay_is_a_write_and_a_flush() -> None:
    rack = SmallRack()
    file = rack.client().open("notes")
    writes, flushes = rack.drives["d1"].writes, rack.drives["d1"].flushes
    file.append(b"one")
    file.append(b"two", flush=False)
    assert (rack.drives["d1"].writes - writes, rack.drives["d1"].flushes - flushes) == (2, 1)


def test_extents_are_given_out_until_a_drive_is_full() -> None:
    rack = SmallRack()
    with pytest.raises(NoRoom, match="d1 has 31 left"):
        rack.metadata.create("large", "d1", 32)
    rack.metadata.create("rest", "d1", 31)
    with pytest.raises(NoSuchFile, match="'large'"):
        rack.client().open("large")


def test_a_file_is_not_lost_to_another_of_its_name() -> None:
    rack = SmallRack()
    file = rack.client().open("notes")
    address = file.append(b"one")
    with pytest.raises(FileExists, match="'notes' already, on d1"):
        rack.metadata.create("notes", "d2", 8)
    assert rack.client().open("notes").read(address) == b"one"


def test_a_file_that_is_opened_again_goes_on_behind_its_last_record() -> None:
    rack = SmallRack()
    before = written(rack, [b"one", b"two" * 2000])
    file = rack.client().open("notes", Rights.APPEND)
    after = [file.append(b"three"), file.append(b"four")]
    reader = rack.client().open("notes")
    assert reader.recover().records == (*before, *after)
    assert [reader.read(address) for address in (*before, *after)] == [b"one", b"two" * 2000, b"three", b"four"]


def test_the_end_of_a_log_is_looked_for_once() -> None:
    rack = SmallRack()
    written(rack, [b"one", b"two"])
    file = rack.client().open("notes")
    reads = rack.drives["d1"].reads
    for _ in range(3):
        file.append(b"more")
    assert rack.drives["d1"].reads - reads == 3  # two records, and the block behind them


def test_without_a_right_no_log_is_looked_through() -> None:
    rack = SmallRack()
    grant = rack.metadata.open("notes", Rights(0), rack.now_s)
    with pytest.raises(TokenRefused):
        rack.servers["s1"].recover("d1", grant.token)


def test_a_drive_that_was_formatted_again_has_no_record_of_the_store_before() -> None:
    first = SmallRack()
    addresses = written(first, [b"old"] * 5)
    old = first.metadata.open("notes", Rights.READ, first.now_s)
    second = SmallRack(first_key=100)
    second.memory["d1"].content[:] = first.memory["d1"].content
    second.format("d1")
    file = second.client().open("notes")
    assert file.recover().records == ()
    assert file.append(b"new") == Address(1, 3)
    assert file.recover().records == (Address(1, 3),)
    with pytest.raises(RecordDamaged, match="no record of this file"):
        file.read(addresses[1])
    with pytest.raises(TokenRefused):
        second.servers["s1"].read("d1", old.token, addresses[1])


def test_a_file_is_gone_with_the_store_it_was_in() -> None:
    rack = SmallRack()
    rack.metadata.create("others", "d2", 4)
    rack.metadata.format_drive("rack", "d1", rack.drives["d1"])
    with pytest.raises(NoSuchFile, match="notes"):
        rack.client().open("notes")
    assert rack.client().open("others").drive_id == "d2"


def test_a_store_in_a_part_of_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "drive"
    rack = SmallRack()
    with FileBlocks(path, 40 * BLOCK_BYTES) as whole:
        part = Part(whole, 8 * BLOCK_BYTES, 32 * BLOCK_BYTES)
        rack.metadata.format_drive("rack", "d3", part)
        rack.servers["s2"].attach("d3", part)
        rack.metadata.create("lasting", "d3", 8)
        rack.at["d3"] = "s2"
        address = rack.client().open("lasting").append(b"stays")
        with pytest.raises(ValueError, match="not within"):
            part.read(31 * BLOCK_BYTES, 2 * BLOCK_BYTES)
    assert path.read_bytes()[: 8 * BLOCK_BYTES] == bytes(8 * BLOCK_BYTES)
    with FileBlocks(path, 40 * BLOCK_BYTES) as whole:
        again = StorageServer("s3", rack.wall_s)
        counted = CountedBlocks(Part(whole, 8 * BLOCK_BYTES, 32 * BLOCK_BYTES))
        again.attach("d3", counted)
        token = rack.metadata.open("lasting", Rights.READ, rack.now_s).token
        assert again.read("d3", token, address) == b"stays"
        assert counted.ios == 2


def test_memory_ends_where_it_ends() -> None:
    with pytest.raises(ValueError, match="not within"):
        MemoryBlocks(BLOCK_BYTES).write(1, bytes(BLOCK_BYTES))
    with pytest.raises(ValueError, match="at least one block"):
        Extent(4, 0)
    assert Tail(3) == Tail(3, 0, 0)
