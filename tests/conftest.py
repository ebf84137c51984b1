"""Signals of the project's own tests: those of a terminal, however the tests were started."""

import signal


def _go_on(_number: int, _frame: object) -> None:
    """Outlive a hang-up, as who starts with nohup wants it."""


# What a process ignores, all that it starts ignores too, unlike what it handles: Ctrl-C where a script started the
# tests in the background, a hang-up under nohup. Runs that tests interrupt would go on, and the tests wait for them.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, _go_on), (signal.SIGQUIT, _go_on)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
