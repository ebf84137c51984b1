"""The permission to type on a console: a lease of the user's own, for as long as it is held."""

from __future__ import annotations

from collections.abc import Callable

from rackloop.clock import Clock
from rackloop.errors import RackloopError

# A person types no faster than a store answers; a lease may be stolen at any time.
_ASKED_EVERY_S = 1.0


class TypingPermit:
    """A lease by which keys may be sent. ``is_held`` asks the store, which was asked a moment ago: ``at_first``.

    It is asked again where a second has passed. One that was lost, or cannot be asked for, does not come back: what was
    typed on in the meantime would be sent in part. ``why_not`` says why nothing is sent.
    """

    def __init__(self, is_held: Callable[[], bool], clock: Clock, *, at_first: bool) -> None:
        self.why_not = "" if at_first else "reading only"
        self._is_held = is_held
        self._clock = clock
        self._asked_ns = clock.now_ns()

    def may_type(self) -> bool:
        """Whether to send what was typed now."""
        now_ns = self._clock.now_ns()
        if not self.why_not and now_ns - self._asked_ns >= _ASKED_EVERY_S * 1e9:
            self._asked_ns = now_ns
            try:
                if not self._is_held():
                    self.why_not = "your lease of the server is over"
            except RackloopError as error:
                self.why_not = f"it cannot be told whether the server is still in a lease of yours ({error})"
        return not self.why_not
