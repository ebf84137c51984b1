"""Following of a console over every loss of the connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Event, Thread

from rackloop.abilities import Console
from rackloop.clock import Clock, Deadline
from rackloop.errors import (
    BadInput,
    HostKeyMismatch,
    HostKeyUnknown,
    LoginRefused,
    NameUnknown,
    NotSupported,
    RackloopError,
    ToolError,
)
from rackloop_labs.console_lines import ConsoleLine, LineAssembler

_OPEN_S = 15.0
_READ_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_FAREWELL_S = 3.0
# To try again would not mend these, or lock an account.
_FINAL = (BadInput, HostKeyMismatch, HostKeyUnknown, LoginRefused, NameUnknown, NotSupported, ToolError)


class ConsoleFollower:
    """Hands the lines of ``console`` to ``take``, on a thread of its own, from :meth:`start` to :meth:`stop`.

    Those that came together are handed over together.

    ``hear`` is handed the bytes, as they come; with ``gather_s`` no more often than that, so that a console on which
    much is said does not take the processor from what is measured. Stamps are as wide then.

    A connection that is lost is made again, and the gap is among the lines; so is the reason where it cannot be made.
    A line that does not end within a second of silence, as a prompt, is handed over as it is. ``trouble`` is why
    nothing is heard now, None while the console is listened to.
    """

    def __init__(
        self,
        console: Console,
        clock: Clock,
        take: Callable[[Sequence[ConsoleLine]], None],
        secrets: Callable[[], Sequence[str]] = tuple,
        hear: Callable[[bytes], None] = lambda _data: None,
        gather_s: float = 0.0,
    ) -> None:
        self.trouble: str | None = "it is not open yet"
        self._console = console
        self._clock = clock
        self._take = take
        self._secrets = secrets
        self._hear = hear
        self._gather_s = gather_s
        self._lines = LineAssembler()
        self._deaf_ns: int | None = None
        self._stopping = Event()
        self._is_ended = Event()
        self._thread = Thread(target=self._follow, name=f"console {console.where}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, within three seconds whatever the console does; what was heard is handed over first."""
        self._stopping.set()
        self._console.close()
        self._thread.join(_FAREWELL_S)

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it has ended by itself, because the console cannot be had at all, within ``seconds``."""
        return self._is_ended.wait(seconds)

    def _follow(self) -> None:
        try:
            self._lines = LineAssembler(self._secrets())
            pause_s = _FIRST_PAUSE_S
            while not self._stopping.is_set():
                try:
                    self._console.open(Deadline.after(self._clock, _OPEN_S))
                    self._say_open()
                    pause_s = _FIRST_PAUSE_S
                    self._listen()
                except _FINAL as error:
                    self._lose(error, "nothing is heard any more")
                    return
                except (RackloopError, OSError) as error:
                    # This machine may be out of what a connection takes, such as descriptors: no test is to fail by it.
                    if not self._stopping.is_set():
                        self._lose(error, "trying again")
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            # A kernel that died in the middle of a line, or a prompt less than a second old.
            self._hand_over(self._lines.flush())
        finally:
            self._console.close()
            self._is_ended.set()

    def _listen(self) -> None:
        while not self._stopping.is_set():
            heard = self._console.read(Deadline.after(self._clock, _READ_S))
            if heard is not None:
                self._hear(heard.data)
            self._hand_over(self._lines.feed(heard) if heard is not None else self._lines.flush())
            self._stopping.wait(self._gather_s)

    def _say_open(self) -> None:
        gap = ""
        if self._deaf_ns is not None:
            gap_s = (self._clock.now_ns() - self._deaf_ns) / 1e9
            gap = f" again; what was said in the {gap_s:.1f} s before is lost"
        self.trouble = self._deaf_ns = None
        self._remark(f"listening{gap}: {self._console.where}")

    def _lose(self, error: RackloopError | OSError, what_now: str) -> None:
        self._hand_over(self._lines.flush())
        if self._deaf_ns is None:
            self._deaf_ns = self._clock.now_ns()
        said = " ".join(str(error).split())
        if said != self.trouble:
            self.trouble = said
            self._remark(f"gap: {said}; {what_now}")

    def _remark(self, text: str) -> None:
        self._take((ConsoleLine(self._clock.now_ns(), 0, text, is_remark=True),))

    def _hand_over(self, lines: Iterable[ConsoleLine]) -> None:
        if complete := tuple(lines):
            self._take(complete)
