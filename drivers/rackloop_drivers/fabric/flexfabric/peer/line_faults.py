"""Faults of the simulated switch's line: rules with a verdict for each line, drawn from a seeded stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from rackloop.seed import Stream

_SHARE_OF_NOISE = 0.25


class LineFault(StrEnum):
    """A fault of a line or of its answer. ``UNHEARD`` loses the line itself, ``LOST`` its answer."""

    UNHEARD = "unheard"
    LATE = "late"
    GARBLED = "garbled"
    LOST = "lost"
    DOUBLED = "doubled"
    POWER_LOSS_BEFORE = "power_loss_before"
    POWER_LOSS_AFTER = "power_loss_after"
    STUCK_PORT = "stuck_port"


@dataclass(frozen=True)
class LineFaultRule:
    """Misbehave on lines that contain ``match`` (upper or lower case): at most ``count`` times (None: always), each
    time with ``probability``. ``delay_s`` belongs to ``LATE``, ``port`` to ``STUCK_PORT``.

    Power goes before the line is carried out or after it and before its answer; either way the answer is lost.
    A port gets stuck before the line is carried out and stays so until :meth:`SwitchPeer.stick` frees it.
    """  # noqa: D205

    act: LineFault
    match: str = ""
    count: int | None = 1
    probability: float = 1.0
    delay_s: float = 0.0
    port: int | None = None


class LineFaults:
    """The rules in force. The same stream, rules and lines give the same misbehaviour again."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rules: list[LineFaultRule] = []
        self._left: dict[int, int | None] = {}

    @contextmanager
    def rule(self, rule: LineFaultRule) -> Iterator[None]:
        """Have ``rule`` in force while the context lasts."""
        self.install(rule)
        try:
            yield
        finally:
            self.remove(rule)

    def install(self, rule: LineFaultRule) -> None:
        """Put ``rule`` in force, after those that are."""
        self._rules.append(rule)
        self._left[id(rule)] = rule.count

    def remove(self, rule: LineFaultRule) -> None:
        """Take ``rule`` away; one that is not in force is no error."""
        self._rules = [kept for kept in self._rules if kept is not rule]
        self._left.pop(id(rule), None)

    def verdict(self, line: bytes) -> LineFaultRule | None:
        """The first rule that strikes this line, or None: behave."""
        if not self._rules:
            return None
        text = line.decode("ascii", "replace").upper()
        for rule in self._rules:
            left = self._left[id(rule)]
            if left == 0 or rule.match.upper() not in text or self._stream.random() >= rule.probability:
                continue
            if left is not None:
                self._left[id(rule)] = left - 1
            return rule
        return None

    def garble(self, data: bytes) -> bytes:
        """The bytes with noise in them: a quarter of them, one at least, have become bytes that are not ASCII.

        The line ending stays, as on a line where only some bits are hit.
        """
        body = bytearray(data.rstrip(b"\n"))
        hit = self._stream.sample(range(len(body)), max(1, round(len(body) * _SHARE_OF_NOISE)))
        for at in hit:
            body[at] = self._stream.randrange(0x80, 0x100)
        return bytes(body) + data[len(body) :]

    def noise(self, length: int) -> bytes:
        """The bytes that a receiver set to another baud rate makes of ``length`` bytes."""
        return bytes(self._stream.randrange(0x80, 0x100) for _ in range(length))
