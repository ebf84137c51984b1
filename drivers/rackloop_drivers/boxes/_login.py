"""Accounts of boxes: drivers try one once, simulated boxes lock one after failures."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LoginRefused
from rackloop.lab import Secret


class Login:
    """The account that all drivers of one box share: a box that refused it is not asked again.

    ``where`` names the box in messages. Controllers lock an account after a few failures, and with it everybody
    out; so each login waits for its :meth:`turn`, and calls :meth:`refused` when the box does not accept it.
    """

    def __init__(self, where: str, user: str | None, password: Secret | None) -> None:
        self.where = where
        self._lock = Lock()
        self._user = user
        self._secret = password
        self._refusal: str | None = None

    @contextmanager
    def turn(self, deadline: Deadline | None = None) -> Iterator[None]:
        """Have the box to oneself while the block lasts; raises DeadlineExceeded where others keep it too long."""
        if not self._lock.acquire(timeout=-1 if deadline is None else deadline.remaining_s()):
            raise DeadlineExceeded(f"{self.where} was not asked in time: others are still waiting for its answer")
        try:
            yield
        finally:
            self._lock.release()

    @property
    def is_anonymous(self) -> bool:
        """Whether the description gives a password alone, as an SNMP community is."""
        return self._user is None

    @property
    def user(self) -> str:
        """The account's name. Raises BadInput where the description gives none."""
        if self._user is None:
            raise BadInput(f"{self.where}: no account is given to log in with; add user: to the lab description")
        return self._user

    def password(self) -> str:
        """The password, read from where it is kept.

        Raises LoginRefused where the box refused it before, BadInput where the description gives none.
        """
        if self._refusal is not None:
            raise LoginRefused(f"{self._refusal} (not tried again)")
        if self._secret is None:
            raise BadInput(f"{self.where}: no password is given to log in with; add password: to the lab description")
        return self._secret.reveal()

    def refused(self, said: str, *, for_good: bool = True) -> LoginRefused:
        """The error to raise when the box refused the account, with what it ``said``.

        It is not asked again, unless it refused one act and not the account: then not ``for_good``.
        """
        account = "its community" if self._user is None else f"the account {self._user}"
        refusal = (
            f"{self.where} refused {account}: {said.rstrip('.')}; check user and password in the lab description, and "
            "whether the account is locked"
        )
        if for_good:
            self._refusal = refusal
        return LoginRefused(refusal)


class Account:
    """The one account of a simulated box, locked for a time after too many failures in a row, as real ones are.

    An account that may not act (``may_act``) reads and switches nothing.
    """

    def __init__(
        self, user: str, password: str, clock: Clock, *, failures_allowed: int = 3, lockout_s: float = 300.0
    ) -> None:
        self.user = user
        self.password = password
        self.failures = 0
        self.may_act = True
        self._clock = clock
        self._failures_allowed = failures_allowed
        self._lockout_s = lockout_s
        self._locked_until_ns = 0

    @property
    def is_locked(self) -> bool:
        """Whether even the right password is refused now."""
        return self._clock.now_ns() < self._locked_until_ns

    def admits(self, user: str, password: str) -> bool:
        """Whether these open the box now; a failure counts towards the lockout."""
        if self.is_locked:
            return False
        shown, right = (
            text.encode(errors="surrogatepass") for text in (f"{user}\0{password}", f"{self.user}\0{self.password}")
        )
        if hmac.compare_digest(shown, right):
            self.succeed()
            return True
        self.fail()
        return False

    def succeed(self) -> None:
        """Note a successful login: earlier failures are forgotten."""
        self.failures = 0
        self._locked_until_ns = 0

    def fail(self) -> None:
        """Count a failed login; one too many locks the account."""
        self.failures += 1
        if self.failures >= self._failures_allowed:
            self._locked_until_ns = self._clock.now_ns() + round(self._lockout_s * 1e9)
