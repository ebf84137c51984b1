"""Signals that end a command: at once where nothing is half done, else when it is not any more."""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path
from threading import Event

import pytest

from rackloop_cli.shared.interruption import (
    answering_interrupt,
    default_signals,
    interruptible,
    interruptible_run,
    uninterrupted,
)

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def never() -> None:
    raise AssertionError("nothing was to be given up")


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_the_block_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", ENDING)
def test_what_is_postponed_for_comes_to_its_end(number: signal.Signals) -> None:
    with interruptible() as interruption:
        with interruption.postponed(never):
            signal.raise_signal(number)
        assert interruption.is_asked
        with pytest.raises(KeyboardInterrupt):
            interruption.check()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_may_not_be_left_half_way_is_done_first(number: signal.Signals) -> None:
    done = []

    def start() -> None:
        with uninterrupted():
            signal.raise_signal(number)
            signal.raise_signal(number)
            done.append("started")
        done.append("too much")

    with pytest.raises(KeyboardInterrupt), interruptible():
        start()
    assert done == ["started"]


def test_a_second_signal_gives_up_what_the_first_waits_for() -> None:
    given_up = Event()
    with interruptible() as interruption, interruption.postponed(given_up.set):
        signal.raise_signal(signal.SIGTERM)
        assert not given_up.is_set()
        signal.raise_signal(signal.SIGTERM)
        assert given_up.wait(60)


MODULE = """
import signal
signal.raise_signal(signal.SIGINT)
is_whole = True
"""


def import_and_wait(name: str) -> None:
    importlib.import_module(name)
    Event().wait(60)


def test_a_run_is_not_interrupted_in_the_middle_of_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_way_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    answered = []
    # The outermost forgets what was heard before.
    with (
        answering_interrupt(),
        pytest.raises(KeyboardInterrupt),
        interruptible_run(lambda: answered.append("interrupted")),
    ):
        import_and_wait("half_way_module")
    assert answered == ["interrupted"]
    assert sys.modules.pop("half_way_module").is_whole
    with answering_interrupt():
        pass


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible() as interruption:
            signal.raise_signal(signal.SIGHUP)
            with default_signals():
                signal.raise_signal(signal.SIGHUP)
        assert not interruption.is_asked
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_takes_signals_itself_finds_them_untaken() -> None:
    with interruptible() as interruption:
        with default_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == interruption.on_signal
