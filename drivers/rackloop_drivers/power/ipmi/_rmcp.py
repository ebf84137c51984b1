"""RMCP+ packets, as sessions of IPMI 2.0 over LAN use them (IPMI specification v2.0 rev. 1.1, chapter 13)."""

from __future__ import annotations

import hmac
import secrets
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

IPMI, SOL, OPEN_REQUEST, OPEN_RESPONSE, RAKP1, RAKP2, RAKP3, RAKP4 = 0x00, 0x01, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15

_RMCP = b"\x06\x00\xff\x07"
_NO_AUTHENTICATION, _RMCP_PLUS = 0x00, 0x06
_ENCRYPTED, _AUTHENTICATED, _TYPE = 0x80, 0x40, 0x3F
_NEXT_HEADER = 0x07
_BLOCK = 16


@dataclass(frozen=True)
class CipherSuite:
    """Algorithms for a session: numbers on the wire, the hash behind them, and how much of it signs a packet."""

    number: int
    authentication: int
    integrity: int
    confidentiality: int
    hash_name: str
    signature_bytes: int

    def sign(self, key: bytes, *parts: bytes) -> bytes:
        """The keyed hash of ``parts``, whole."""
        return hmac.digest(key, b"".join(parts), self.hash_name)


SUITES = (CipherSuite(3, 1, 1, 1, "sha1", 12), CipherSuite(17, 3, 4, 1, "sha256", 16))


@dataclass(frozen=True)
class Keys:
    """The keys of a session: its suite, and those made from the session integrity key."""

    suite: CipherSuite
    signing: bytes
    cipher: bytes

    @classmethod
    def of(cls, suite: CipherSuite, session_key: bytes) -> Keys:
        """The keys K1 and K2 (13.32)."""
        return cls(suite, suite.sign(session_key, b"\x01" * 20), suite.sign(session_key, b"\x02" * 20)[:_BLOCK])


@dataclass(frozen=True)
class Packet:
    """A packet in or out of a session; ``is_plus`` where its header is that of RMCP+."""

    kind: int
    session_id: int
    sequence: int
    payload: bytes
    is_plus: bool = True


def session_of(data: bytes) -> int:
    """The session a packet says it belongs to; 0 for none. Raises ValueError where it is no IPMI packet."""
    if len(data) < 14 or data[:4] != _RMCP or data[4] not in {_NO_AUTHENTICATION, _RMCP_PLUS}:
        raise ValueError("no IPMI packet")
    return int.from_bytes(data[6:10] if data[4] == _RMCP_PLUS else data[9:13], "little")


def unwrap(data: bytes, keys: Keys | None) -> Packet:
    """The packet in ``data``, its signature verified and its payload decrypted with the session's ``keys``.

    Raises ValueError where it is malformed, or a session's packet is neither signed nor encrypted as agreed.
    """
    session_id = session_of(data)
    if data[4] == _NO_AUTHENTICATION:
        if session_id or len(data) < 14 + data[13]:
            raise ValueError("a session of IPMI 1.5, or a packet cut short")
        return Packet(IPMI, 0, 0, data[14 : 14 + data[13]], is_plus=False)
    if len(data) < 16:
        raise ValueError("a packet cut short")
    flags = data[5]
    sequence, length = struct.unpack_from("<IH", data, 10)
    payload = data[16 : 16 + length]
    if len(payload) != length:
        raise ValueError("a packet cut short")
    if session_id:
        if keys is None or flags & (_ENCRYPTED | _AUTHENTICATED) != _ENCRYPTED | _AUTHENTICATED:
            raise ValueError("a packet of a session that is not both signed and encrypted")
        signed, signature = data[4 : -keys.suite.signature_bytes], data[-keys.suite.signature_bytes :]
        if not hmac.compare_digest(signature, _signature(keys, signed)):
            raise ValueError("a packet with a wrong signature")
        payload = _decrypted(payload, keys)
    return Packet(flags & _TYPE, session_id, sequence, payload)


def wrap(packet: Packet, keys: Keys | None) -> bytes:
    """The bytes of a packet, signed and encrypted where it belongs to a session with ``keys``."""
    if not packet.is_plus:
        return _RMCP + bytes(9) + bytes([len(packet.payload)]) + packet.payload
    flags, payload = packet.kind, packet.payload
    if keys is not None:
        flags |= _ENCRYPTED | _AUTHENTICATED
        payload = _encrypted(payload, keys)
    wrapped = struct.pack("<BBIIH", _RMCP_PLUS, flags, packet.session_id, packet.sequence, len(payload)) + payload
    if keys is not None:
        padding = -(len(wrapped) + 2) % 4
        wrapped += b"\xff" * padding + bytes([padding, _NEXT_HEADER])
        wrapped += _signature(keys, wrapped)
    return _RMCP + wrapped


@dataclass(frozen=True)
class Message:
    """An IPMI message (13.8): what to do, and with what. ``net_function`` of a response is odd."""

    net_function: int
    command: int
    data: bytes
    sequence: int = 0
    to: int = 0x20
    sender: int = 0x81

    @classmethod
    def parse(cls, raw: bytes) -> Message:
        """The message in a payload; raises ValueError for a wrong checksum."""
        if len(raw) < 7 or _checksum(raw[:3]) or _checksum(raw[3:]):
            raise ValueError("an IPMI message cut short, or with a wrong checksum")
        return cls(raw[1] >> 2, raw[5], raw[6:-1], raw[4] >> 2, raw[0], raw[3])

    def answer(self, code: int, data: bytes = b"") -> bytes:
        """The payload of the response to this request."""
        head = bytes([self.sender, (self.net_function | 1) << 2])
        body = bytes([self.to, self.sequence << 2, self.command, code]) + data
        return head + bytes([_checksum(head)]) + body + bytes([_checksum(body)])


def _checksum(data: bytes) -> int:
    return -sum(data) & 0xFF


def _signature(keys: Keys, data: bytes) -> bytes:
    return keys.suite.sign(keys.signing, data)[: keys.suite.signature_bytes]


def _encrypted(payload: bytes, keys: Keys) -> bytes:
    padding = -(len(payload) + 1) % _BLOCK
    vector = secrets.token_bytes(_BLOCK)
    encryptor = Cipher(AES(keys.cipher), CBC(vector)).encryptor()
    padded = payload + bytes(range(1, padding + 1)) + bytes([padding])
    return vector + encryptor.update(padded) + encryptor.finalize()


def _decrypted(payload: bytes, keys: Keys) -> bytes:
    if len(payload) < 2 * _BLOCK or len(payload) % _BLOCK:
        raise ValueError("an encrypted payload that is no whole number of blocks")
    decryptor = Cipher(AES(keys.cipher), CBC(payload[:_BLOCK])).decryptor()
    padded = decryptor.update(payload[_BLOCK:]) + decryptor.finalize()
    padding = padded[-1]
    if padding >= _BLOCK:
        raise ValueError("an encrypted payload with a wrong padding")
    return padded[: len(padded) - 1 - padding]
