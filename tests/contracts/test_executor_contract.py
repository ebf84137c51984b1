"""The executor of this machine keeps the Executor contract."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rackloop.clock import Deadline
from rackloop.contracts.executor import CONTRACT, ExecutorFactory
from rackloop.errors import BadInput, LabError, ToolError
from rackloop_drivers.host import LocalExecutor
from tests.deadlines import CLOCK


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_local_executor(clause: Callable[[ExecutorFactory], None]) -> None:
    clause(lambda: LocalExecutor(CLOCK))


def test_a_file_that_is_no_program_cannot_be_executed() -> None:
    with LocalExecutor(CLOCK) as executor, pytest.raises(ToolError, match="cannot be executed: Permission denied"):
        executor.run((executor.put_text("data", ""),), Deadline.after(CLOCK, 5))


def test_an_argument_cannot_hold_nul() -> None:
    with LocalExecutor(CLOCK) as executor, pytest.raises(BadInput, match="null byte"):
        executor.run(("echo", "a\0b"), Deadline.after(CLOCK, 5))


def test_a_closed_executor_starts_nothing() -> None:
    executor = LocalExecutor(CLOCK)
    executor.close()
    with pytest.raises(LabError, match="closed"):
        executor.run(("true",), Deadline.after(CLOCK, 5))
    with pytest.raises(LabError, match="closed"):
        executor.put_text("a", "")


def test_what_a_command_leaves_in_its_group_does_not_hold_its_caller() -> None:
    with LocalExecutor(CLOCK) as executor:
        done = executor.run(("sh", "-c", "sleep 1000 & echo started"), Deadline.after(CLOCK, 20))
    assert done.stdout == "started\n"


def test_a_deadline_may_lie_months_ahead() -> None:
    with LocalExecutor(CLOCK) as executor:
        process = executor.start(("echo", "now"))
        far = Deadline.after(CLOCK, 1e8)
        assert process.read_line(far) == "now"
        assert process.wait(far).status == 0
