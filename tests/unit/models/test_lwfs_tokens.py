"""Who is served by a storage server, what is asked of whom for it, and what a move and a new key change."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Lock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.abilities.blocks import Blocks
from rackloop_models.lwfs import (
    KEY_BYTES,
    Address,
    CountedBlocks,
    Extent,
    Grant,
    LwfsClient,
    NoStore,
    NotHere,
    Refusal,
    Rights,
    StorageServer,
    Tail,
    Token,
    TokenRefused,
)
from tests.unit.models.lwfs_rack import SmallRack

KEY = b"k" * KEY_BYTES
TOKEN = Token(b"f" * 16, Extent(8, 4), Rights.READ | Rights.APPEND, 2_000)


def test_a_token_says_what_it_said_when_it_was_signed() -> None:
    assert Token.checked(TOKEN.signed(KEY), KEY) == TOKEN


@given(place=st.integers(min_value=0, max_value=len(TOKEN.signed(KEY)) - 1), flipped=st.integers(1, 255))
def test_a_token_with_any_byte_changed_is_refused(place: int, flipped: int) -> None:
    raw = bytearray(TOKEN.signed(KEY))
    raw[place] ^= flipped
    with pytest.raises(TokenRefused):
        Token.checked(bytes(raw), KEY)


@given(st.binary(max_size=120))
def test_noise_is_no_token(raw: bytes) -> None:
    with pytest.raises(TokenRefused) as refused:
        Token.checked(raw, KEY)
    assert refused.value.refusal in {Refusal.MALFORMED, Refusal.FORGED}


def test_many_ios_on_a_file_ask_the_metadata_service_once_and_the_drive_for_its_key_once() -> None:
    rack = SmallRack()
    before, formatted = rack.metadata.calls, rack.drives["d1"].reads
    file = rack.client().open("notes")
    addresses = [file.append(bytes([number]) * 100) for number in range(10)]
    assert [file.read(address) for address in addresses] == [bytes([number]) * 100 for number in range(10)]
    assert rack.metadata.calls - before == 1
    assert formatted == 1
    assert rack.drives["d1"].reads - formatted == 1 + 10  # the end of the log, for the first append


def refused_calls(rack: SmallRack, spoil: Callable[[bytes], bytes], *, block: int | None = None) -> Refusal:
    """Why s1 refuses a read of the first record with a spoilt token; neither metadata nor drive may be asked for it."""
    client = rack.client()
    address = client.open("notes").append(b"hello")
    grant = client.grant("notes", Rights.READ | Rights.APPEND)
    calls, ios = rack.metadata.calls, rack.drives["d1"].ios
    with pytest.raises(TokenRefused) as refused:
        rack.servers["s1"].read("d1", spoil(grant.token), address if block is None else Address(block, 5))
    assert (rack.metadata.calls, rack.drives["d1"].ios) == (calls, ios)
    return refused.value.refusal


def test_a_forged_token_is_refused_by_the_server_alone() -> None:
    assert refused_calls(SmallRack(), lambda token: token[:-1] + bytes([token[-1] ^ 1])) is Refusal.FORGED


def test_a_token_of_another_drive_is_refused_by_the_server_alone() -> None:
    rack = SmallRack()
    rack.metadata.create("others", "d2", 32)
    other = rack.metadata.open("others", Rights.READ, rack.now_s)
    assert refused_calls(rack, lambda _token: other.token) is Refusal.FORGED


def test_a_token_that_ended_is_refused_by_the_server_alone() -> None:
    rack = SmallRack()

    def late(token: bytes) -> bytes:
        rack.now_s += 60
        return token

    assert refused_calls(rack, late) is Refusal.EXPIRED


@pytest.mark.parametrize("block", [0, 33, 63])
def test_a_token_of_another_extent_is_refused_by_the_server_alone(block: int) -> None:
    assert refused_calls(SmallRack(), lambda token: token, block=block) is Refusal.OUTSIDE


def test_a_token_to_read_does_not_append() -> None:
    rack = SmallRack()
    grant = rack.metadata.open("notes", Rights.READ, rack.now_s)
    with pytest.raises(TokenRefused) as refused:
        rack.servers["s1"].append("d1", grant.token, Tail(grant.extent.first), b"no")
    assert refused.value.refusal is Refusal.NO_RIGHT
    assert rack.drives["d1"].writes == 1  # the key, when it was formatted


def test_a_record_that_would_leave_the_extent_is_not_written() -> None:
    rack = SmallRack()
    file = rack.client().open("notes")
    file.append(b"x" * (31 * 4096 - 100))
    with pytest.raises(TokenRefused) as refused:
        file.append(b"y" * 4096)
    assert refused.value.refusal is Refusal.OUTSIDE


def test_a_move_costs_one_read_and_tokens_stay_good() -> None:
    rack = SmallRack()
    file = rack.client().open("notes")
    address = file.append(b"before the move")
    calls, ios = rack.metadata.calls, rack.drives["d1"].ios
    rack.move("d1", "s2")
    assert rack.drives["d1"].ios - ios == 1
    assert file.read(address) == b"before the move"
    assert rack.drives["d1"].ios - ios == 2
    assert rack.metadata.calls == calls


def test_a_new_key_ends_every_token_of_the_old_one_wherever_the_drive_goes() -> None:
    rack = SmallRack()
    client = rack.client()
    file = client.open("notes")
    address = file.append(b"kept")
    old = client.grant("notes", Rights.READ | Rights.APPEND)
    rack.metadata.revoke("d1", rack.servers["s1"])
    for moved_to in (None, "s1", "s2"):
        if moved_to is not None:
            rack.move("d1", moved_to)
        server = moved_to or "s1"
        with pytest.raises(TokenRefused) as refused:
            rack.servers[server].read("d1", old.token, address)
        assert refused.value.refusal is Refusal.FORGED
    client.forget("notes")
    assert file.read(address) == b"kept"


class WatchedLock:
    """A lock that says when somebody has to wait for it."""

    def __init__(self) -> None:
        self.wanted = Event()
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.wanted.set()
            self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


class HeldAtTheKey(CountedBlocks):
    """Blocks on which the writing of a key takes as long as one likes."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.begun, self.may_end = Event(), Event()

    def write(self, offset: int, data: bytes) -> None:
        if offset == 0:
            self.begun.set()
            assert self.may_end.wait(60)
        super().write(offset, data)


def append(server: StorageServer, grant: Grant) -> object:
    return server.append("d1", grant.token, Tail(grant.extent.first + 1, 1), b"too late")


def read(server: StorageServer, grant: Grant) -> object:
    return server.read("d1", grant.token, Address(grant.extent.first, 4))


def recover(server: StorageServer, grant: Grant) -> object:
    return server.recover("d1", grant.token)


@pytest.mark.parametrize("request_on", [append, read, recover])
def test_a_request_that_waits_while_the_drive_gets_another_key_is_refused(
    request_on: Callable[[StorageServer, Grant], object],
) -> None:
    rack = SmallRack()
    client = rack.client()
    client.open("notes").append(b"kept")
    grant, server = client.grant("notes", Rights.READ | Rights.APPEND), rack.servers["s1"]
    held, lock = HeldAtTheKey(rack.drives["d1"]), WatchedLock()
    server.attach("d1", held)
    vars(server._attached["d1"])["lock"] = lock
    with ThreadPoolExecutor(2) as threads:
        revoked = threads.submit(rack.metadata.revoke, "d1", server)
        assert held.begun.wait(60)
        ios = held.ios
        waiting = threads.submit(request_on, server, grant)
        assert lock.wanted.wait(60)
        held.may_end.set()
        revoked.result()
        with pytest.raises(TokenRefused) as refused:
            waiting.result()
    assert refused.value.refusal is Refusal.FORGED
    assert held.ios - ios == 2  # the key and its flush


def test_a_client_asks_for_a_new_token_when_its_own_has_ended() -> None:
    rack = SmallRack()
    client = rack.client()
    file = client.open("notes")
    address = file.append(b"hello")
    calls = rack.metadata.calls
    rack.now_s += 61
    assert file.read(address) == b"hello"
    assert rack.metadata.calls == calls + 1


def test_a_token_that_ends_before_its_request_is_served_is_asked_for_anew() -> None:
    """As on its way, or by the clock of a server that is ahead of the client's."""
    rack = SmallRack()
    client = LwfsClient(rack.metadata, rack, rack.servers, lambda: rack.now_s - 2)
    file = client.open("notes")
    address = file.append(b"one")
    for number in range(1, 4):
        rack.now_s += 59 + number % 2
        calls = rack.metadata.calls
        assert file.read(address) == b"one"
        file.append(b"more")
        assert rack.metadata.calls == calls + 1
    assert len(file.recover().records) == 4


def test_a_token_that_is_refused_for_another_reason_is_not_asked_for_anew() -> None:
    rack = SmallRack()
    file = rack.client().open("notes")
    file.append(b"one")
    rack.metadata.revoke("d1", rack.servers["s1"])
    calls = rack.metadata.calls
    with pytest.raises(TokenRefused, match="forged"):
        file.append(b"two")
    assert rack.metadata.calls == calls


def test_a_client_that_keeps_servers_asks_again_only_after_a_move() -> None:
    rack = SmallRack()
    client = rack.client(keeps_servers=True, tries=2)
    file = client.open("notes")
    addresses = [file.append(b"one"), file.append(b"two")]
    assert client.lookups == 1
    rack.move("d1", "s2")
    assert [file.read(address) for address in addresses] == [b"one", b"two"]
    assert client.lookups == 2


def test_a_client_says_who_answered_and_when_that_one_was_asked() -> None:
    rack = SmallRack()
    client = rack.client(keeps_servers=True, tries=2)
    file = client.open("notes")
    file.append(b"one")
    assert (client.served_by, client.asked_s) == ("s1", 1_000.0)
    rack.move("d1", "s2")
    found_at = rack.server_of

    def later(drive_id: str) -> str:
        rack.now_s += 5
        return found_at(drive_id)

    vars(rack)["server_of"] = later
    file.append(b"two")
    assert (client.served_by, client.asked_s) == ("s2", 1_005.0)


def test_a_client_that_does_not_keep_servers_asks_at_every_io() -> None:
    rack = SmallRack()
    client = rack.client()
    file = client.open("notes")
    address = file.append(b"one")
    file.read(address)
    assert client.lookups == 2


def test_a_server_answers_only_for_drives_that_are_attached() -> None:
    rack = SmallRack()
    file = rack.client().open("notes")
    rack.servers["s1"].detach("d1")
    with pytest.raises(NotHere, match="d1 is not attached to s1"):
        file.append(b"nowhere")
    assert rack.servers["s1"].drives == frozenset()


def test_the_wrong_drive_and_one_without_a_store_are_not_taken() -> None:
    rack = SmallRack()
    with pytest.raises(NoStore, match="d2 was to be attached, but it is d1"):
        rack.servers["s2"].attach("d2", rack.drives["d1"])
    rack.memory["d1"].content[40] ^= 1
    with pytest.raises(NoStore, match="format the drive first"):
        StorageServer("s3", rack.wall_s).attach("d1", rack.drives["d1"])


def test_what_a_token_gives_does_not_depend_on_what_it_is_asked_with() -> None:
    with pytest.raises(TokenRefused) as refused:
        replace(TOKEN, rights=Rights.READ).require(Rights.APPEND, Extent(8, 1), 0)
    assert refused.value.refusal is Refusal.NO_RIGHT
    TOKEN.require(Rights.READ, TOKEN.extent, TOKEN.expires_s - 0.001)
