"""The dialect: one line of words each way, as bytes. Replace it by the box's own; everything else may stay."""

from __future__ import annotations

from dataclasses import dataclass

from rackloop.errors import ProtocolError


@dataclass(frozen=True)
class Request:
    """A request: a verb and its arguments, without spaces and line ends."""

    verb: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The reply to a request that was carried out."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """The reply to a request that was refused."""

    reason: str


def encode_request(request: Request) -> bytes:
    """The line that asks for ``request``."""
    return _line(request.verb, *request.arguments)


def decode_request(line: bytes) -> Request:
    """The request in ``line``; raises ProtocolError when there is none."""
    verb, *arguments = _words(line)
    return Request(verb, tuple(arguments))


def encode_reply(reply: Answer | Refusal) -> bytes:
    """The line that says ``reply``."""
    return _line("ERROR", reply.reason) if isinstance(reply, Refusal) else _line("OK", *reply.words)


def decode_reply(line: bytes) -> Answer | Refusal:
    """The reply in ``line``; raises ProtocolError when it is neither an answer nor a refusal."""
    status, *words = _words(line)
    if status == "OK":
        return Answer(tuple(words))
    if status == "ERROR":
        return Refusal(" ".join(words))
    raise ProtocolError(f"expected OK or ERROR, got {line!r}: is this the right box?")


def _line(*words: str) -> bytes:
    return " ".join(words).encode("ascii") + b"\n"


def _words(line: bytes) -> list[str]:
    try:
        words = line.decode("ascii").split()
    except UnicodeDecodeError:
        words = []
    if not words or not line.endswith(b"\n"):
        raise ProtocolError(f"expected a line of ASCII words, got {line!r}: is this the right box?")
    return words
