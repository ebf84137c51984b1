"""The controller's end of an RMCP+ session: opening (RAKP) and authentication."""

from __future__ import annotations

import hmac
import secrets
import struct
from dataclasses import dataclass, field

from rackloop_drivers.boxes import Account
from rackloop_drivers.power.ipmi._rmcp import SUITES, CipherSuite, Keys

USER, OPERATOR, ADMINISTRATOR = 2, 3, 4
OK, BAD_SESSION, NO_SUCH_NAME, BAD_INTEGRITY, NO_SUCH_SUITE = 0x00, 0x02, 0x0D, 0x0F, 0x11


@dataclass
class Session:
    """One client. ``keys`` are there once it has proved that it knows the password.

    ``last_answer`` is that to ``last_request``, None while it is being carried out. ``privilege`` is its level now, and
    may be raised to ``most_privilege``, the role that the client logged in for.
    """

    console_id: int
    suite: CipherSuite
    controller_id: int = field(default_factory=lambda: secrets.randbits(31) | 1)
    keys: Keys | None = None
    sequence: int = 0
    last_request: bytes = b""
    last_answer: bytes | None = None
    privilege: int = USER
    most_privilege: int = ADMINISTRATOR
    _role: bytes = b""
    _console_random: bytes = b""
    _controller_random: bytes = b""

    def challenge(self, rakp1: bytes, account: Account, guid: bytes) -> bytes:
        """RAKP message 2: the controller's random number, signed with the password. Refused for unknown names.

        A client that sees by the signature that its password is wrong falls silent, so that each challenge is a failed
        login until it is met.
        """
        tag, self._console_random, role, name_length = rakp1[:1], rakp1[8:24], rakp1[24:25], rakp1[27]
        name = rakp1[28 : 28 + name_length]
        if account.is_locked:
            return self._status(tag, NO_SUCH_NAME)
        if not self._controller_random:
            account.fail()
        if name != account.user.encode():
            return self._status(tag, NO_SUCH_NAME)
        self._role = role + bytes([name_length]) + name
        # None asks for the highest there is.
        self.most_privilege = role[0] & 0x0F or ADMINISTRATOR
        self._controller_random = secrets.token_bytes(16)
        signature = self.suite.sign(
            account.password.encode(),
            struct.pack("<II", self.console_id, self.controller_id),
            self._console_random,
            self._controller_random,
            guid,
            self._role,
        )
        return self._status(tag, OK) + self._controller_random + guid + signature

    def admit(self, rakp3: bytes, account: Account, guid: bytes) -> bytes:
        """RAKP message 4: whether the client proved in message 3 that it knows the password."""
        tag, status = rakp3[:1], rakp3[1]
        if not self._controller_random:
            return self._status(tag, BAD_SESSION)
        password = account.password.encode()
        proof = self.suite.sign(password, self._controller_random, struct.pack("<I", self.console_id), self._role)
        if status != OK or not hmac.compare_digest(proof, rakp3[8:]):
            return self._status(tag, BAD_INTEGRITY)
        account.succeed()
        session_key = self.suite.sign(password, self._console_random, self._controller_random, self._role)
        self.keys = Keys.of(self.suite, session_key)
        proof = self.suite.sign(session_key, self._console_random, struct.pack("<I", self.controller_id), guid)
        return self._status(tag, OK) + proof[: self.suite.signature_bytes]

    def _status(self, tag: bytes, status: int) -> bytes:
        return tag + bytes([status, 0, 0]) + struct.pack("<I", self.console_id)


def open_session(request: bytes) -> tuple[Session | None, bytes]:
    """The session for an RMCP+ Open Session Request, and the response to it; no session where no suite matches."""
    tag, (console_id,) = request[:1], struct.unpack_from("<I", request, 4)
    wanted = tuple(request[offset + 4] & 0x3F for offset in (8, 16, 24))
    suites = {(suite.authentication, suite.integrity, suite.confidentiality): suite for suite in SUITES}
    if wanted not in suites:
        return None, tag + bytes([NO_SUCH_SUITE, 0, 0]) + struct.pack("<I", console_id)
    session = Session(console_id, suites[wanted])
    agreed = b"".join(struct.pack("BBBBBBBB", kind, 0, 0, 8, value, 0, 0, 0) for kind, value in enumerate(wanted))
    response = tag + bytes([OK, ADMINISTRATOR, 0]) + struct.pack("<II", console_id, session.controller_id) + agreed
    return session, response
