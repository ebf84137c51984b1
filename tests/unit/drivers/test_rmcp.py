"""RMCP+ packets: what is wrapped is unwrapped, and nothing that was tampered with."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop_drivers.power.ipmi import _rmcp as rmcp

KEYS = [rmcp.Keys.of(suite, b"k" * hashlib.new(suite.hash_name).digest_size) for suite in rmcp.SUITES]
SESSION = st.integers(1, 2**32 - 1)


@given(payload=st.binary(max_size=200), session=SESSION, sequence=SESSION, keys=st.sampled_from(KEYS))
def test_a_packet_comes_out_as_it_went_in(payload: bytes, session: int, sequence: int, keys: rmcp.Keys) -> None:
    packet = rmcp.Packet(rmcp.IPMI, session, sequence, payload)
    wrapped = rmcp.wrap(packet, keys)
    assert rmcp.session_of(wrapped) == session
    assert rmcp.unwrap(wrapped, keys) == packet


@given(keys=st.sampled_from(KEYS), data=st.data())
def test_a_packet_with_a_bit_flipped_is_refused(keys: rmcp.Keys, data: st.DataObject) -> None:
    wrapped = bytearray(rmcp.wrap(rmcp.Packet(rmcp.IPMI, 7, 1, b"chassis control"), keys))
    # The four bytes before are RMCP's own and not signed.
    at = data.draw(st.integers(4, len(wrapped) - 1))
    wrapped[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match=r"packet|payload|session"):
        assert rmcp.unwrap(bytes(wrapped), keys) is None


def test_a_sessions_packet_is_not_taken_without_its_keys() -> None:
    plain = rmcp.wrap(rmcp.Packet(rmcp.IPMI, 7, 1, b"anything"), None)
    for keys in (None, *KEYS):
        with pytest.raises(ValueError, match="not both signed and encrypted"):
            rmcp.unwrap(plain, keys)


@given(data=st.binary(max_size=80), start=st.sampled_from([b"", b"\x06\x00\xff\x07", b"\x06\x00\xff\x07\x06"]))
def test_noise_is_refused_or_a_packet_outside_any_session(data: bytes, start: bytes) -> None:
    try:
        packet = rmcp.unwrap(start + data, KEYS[0])
    except ValueError:
        return
    assert packet.session_id == 0


def test_a_message_is_answered_to_who_sent_it() -> None:
    request = rmcp.Message.parse(_message(0x20, 0x06, 0x81, 1, 1))
    assert (request.net_function, request.command, request.data) == (0x06, 0x01, b"")
    answer = request.answer(0, b"\x20")
    assert answer[:2] == bytes([0x81, 0x07 << 2])
    assert sum(answer[:3]) % 256 == 0
    assert answer[3:8] == bytes([0x20, 1 << 2, 0x01, 0x00, 0x20])
    assert sum(answer[3:]) % 256 == 0


def test_a_message_with_a_wrong_checksum_is_refused() -> None:
    whole = _message(0x20, 0x06, 0x81, 1, 1)
    for at in range(len(whole)):
        broken = bytearray(whole)
        broken[at] ^= 0x01
        with pytest.raises(ValueError, match="checksum"):
            rmcp.Message.parse(bytes(broken))


def _message(to: int, net_function: int, sender: int, sequence: int, command: int) -> bytes:
    head = bytes([to, net_function << 2])
    body = bytes([sender, sequence << 2, command])
    return head + bytes([-sum(head) & 0xFF]) + body + bytes([-sum(body) & 0xFF])
