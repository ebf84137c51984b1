"""The example executor keeps the Executor contract, on its simulated host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.contracts.executor import CONTRACT, ExecutorFactory
from rackloop.errors import NotSupported
from skeletons.executor import ExampleExecutor, SimExample


def make() -> ExampleExecutor:
    return ExampleExecutor(SimExample("srv1").reach, RealClock())


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_contract(clause: Callable[[ExecutorFactory], None]) -> None:
    try:
        clause(make)
    except NotSupported as reason:
        pytest.skip(str(reason))


def test_commands_run_on_the_host() -> None:
    with closing(make()) as executor:
        done = executor.run(("sh", "-c", 'echo "$RACKLOOP_HOST"'), Deadline.after(RealClock(), 20))
    assert done.stdout == "srv1\n"
