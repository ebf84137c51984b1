"""Logging in to an SSH server: a key, the agent's keys, a password, in this order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LoginRefused, NotConnected
from rackloop.lab import Secret
from rackloop_drivers.host._paramiko import DAMAGED
from rackloop_drivers.host._plain_file import require_plain_file

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from paramiko import PKey, Transport

    from rackloop_drivers.host._access import SshAccess

# sshd closes the connection at the 6th failure (MaxAuthTries), and nobody could tell that from one that was lost.
_AGENT_KEYS = 5


class Answer(Enum):
    """A server's answer to an offer: come in, that and something else, or no."""

    LET_IN = auto()
    MORE = auto()
    REFUSED = auto()


@dataclass(frozen=True)
class Offer:
    """Something to log in with; ``what`` names it in messages.

    One that is ``alone`` wants a connection on which nothing was refused: the server may not take another there, and
    only an answer tells a refused password, which must not be shown again, from a lost connection.
    """

    what: str
    show: Callable[[Transport], object]
    alone: bool = False


def answer_to(
    offer: Offer, access: SshAccess, transport: Transport, tried: Sequence[str], deadline: Deadline
) -> Answer:
    """Show ``offer`` to the server; ``tried`` names all that was shown to it, this included.

    Raises NotConnected and DeadlineExceeded where it stops answering.
    """
    from paramiko import AuthenticationException, SSHException

    transport.auth_timeout = deadline.remaining_s()
    try:
        try:
            offer.show(transport)
        except AuthenticationException:
            if not transport.is_active() or deadline.is_over():
                raise
            return Answer.REFUSED
    except (SSHException, EOFError, OSError) as error:
        if deadline.is_over():
            raise DeadlineExceeded(f"{access}: the server did not answer the login in time; is it hung?") from error
        raise NotConnected(
            f"{access}: the server closed the connection when it was shown {', '.join(tried)}"
        ) from error
    return Answer.LET_IN if transport.is_authenticated() else Answer.MORE


def refusal(access: SshAccess, tried: Sequence[str]) -> LoginRefused | BadInput:
    """The error to raise where none of what was ``tried`` opened the server, or there was nothing to try."""
    if not tried:
        return BadInput(
            f"{access}: there is nothing to log in with: give key_file or password in the lab description, or start "
            "an ssh-agent with a key"
        )
    return LoginRefused(
        f"{access}: the server let {access.user} in with none of: {', '.join(tried)}; check the user, and "
        "authorized_keys on the server"
    )


def offers(access: SshAccess) -> Generator[Offer, None, None]:
    """The offers to log in with, each read when it is its turn. Raises BadInput where it cannot be read."""
    if access.key_file:
        yield _key(access, f"the key {access.key_file}", _read_key(access.key_file, access.passphrase))
    elif access.use_agent:
        from paramiko import Agent

        agent = Agent()
        try:
            for key in agent.get_keys()[:_AGENT_KEYS]:
                yield _key(access, f"the agent's key {key.comment or key.fingerprint}", key)
        finally:
            agent.close()
    if access.password:
        password = access.password.reveal()
        yield Offer("the password", lambda transport: transport.auth_password(access.user, password), alone=True)


def _key(access: SshAccess, what: str, key: PKey) -> Offer:
    return Offer(what, lambda transport: transport.auth_publickey(access.user, key))


def _read_key(path: Path, passphrase: Secret | None) -> PKey:
    from paramiko import ECDSAKey, Ed25519Key, PasswordRequiredException, RSAKey, SSHException

    given = passphrase.reveal() if passphrase else None
    for kind in (Ed25519Key, ECDSAKey, RSAKey):
        try:
            require_plain_file("key", path)
            return kind.from_private_key_file(str(path), given)
        except PasswordRequiredException:
            raise BadInput(
                f"the key {path} is encrypted and no passphrase is given; add it to an ssh-agent (ssh-add {path}) and "
                "leave key_file out"
            ) from None
        except OSError as error:
            raise BadInput(f"the key {path} cannot be read: {error.strerror}; check its name, owner and mode") from None
        except (SSHException, *DAMAGED):
            continue
    how = "its passphrase is wrong, or it is" if given else "it is"
    raise BadInput(f"the key {path} cannot be used: {how} no private key of type Ed25519, ECDSA or RSA")
