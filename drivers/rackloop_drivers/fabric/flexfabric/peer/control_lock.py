"""The control lock of the switch, by fencing token: a state machine as a table."""

from __future__ import annotations

from enum import Enum, auto

from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import COMMAND_PROTECTED, ScpiError


class LockState(Enum):
    """The lock: free or held."""

    FREE = auto()
    HELD = auto()


class LockEvent(Enum):
    """An event of the lock; a token is compared with the highest that was ever granted."""

    REQUEST_LOWER = auto()
    REQUEST_SAME = auto()
    REQUEST_HIGHER = auto()
    RELEASE_SAME = auto()
    RELEASE_OTHER = auto()
    POWER_LOSS = auto()


#: The state that follows; what is not listed is refused with -203 and changes nothing.
TRANSITIONS = {
    LockState.FREE: {
        LockEvent.REQUEST_SAME: LockState.HELD,
        LockEvent.REQUEST_HIGHER: LockState.HELD,
        LockEvent.RELEASE_SAME: LockState.FREE,
        LockEvent.POWER_LOSS: LockState.FREE,
    },
    LockState.HELD: {
        LockEvent.REQUEST_SAME: LockState.HELD,
        LockEvent.REQUEST_HIGHER: LockState.HELD,
        LockEvent.RELEASE_SAME: LockState.FREE,
        LockEvent.POWER_LOSS: LockState.FREE,
    },
}


class ControlLock:
    """The switch's lock and the highest token it ever granted, which only grows."""

    def __init__(self, highest: int = 0) -> None:
        self.highest = highest
        self._state = LockState.FREE

    @property
    def holder(self) -> int:
        """The token that holds the lock, 0 when it is free."""
        return self.highest if self._state is LockState.HELD else 0

    def permits(self, presented: int | None) -> bool:
        """Whether a connection that presented this token may change the switch."""
        return self._state is LockState.FREE or presented == self.highest

    def request(self, token: int) -> None:
        """Grant the lock to ``token``, or refuse because a higher one was granted before."""
        if token < self.highest:
            event = LockEvent.REQUEST_LOWER
        else:
            event = LockEvent.REQUEST_SAME if token == self.highest else LockEvent.REQUEST_HIGHER
        self._follow(event, f"token {token} is lower than {self.highest}, which was granted")
        self.highest = token

    def release(self, token: int) -> None:
        """Free the lock; releasing it twice with the token that held it last is no error."""
        event = LockEvent.RELEASE_SAME if token == self.highest else LockEvent.RELEASE_OTHER
        self._follow(event, f"token {token} does not hold the lock")

    def lose_power(self) -> None:
        """Forget the holder, keep the highest token."""
        self._follow(LockEvent.POWER_LOSS, "")

    def _follow(self, event: LockEvent, refusal: str) -> None:
        following = TRANSITIONS[self._state].get(event)
        if following is None:
            raise ScpiError(COMMAND_PROTECTED, refusal)
        self._state = following
