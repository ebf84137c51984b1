"""The environment of programs that are started on the harness's own machine."""

from __future__ import annotations

from contextlib import closing

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.lab import EnvironmentSecret
from rackloop_drivers.host import LocalExecutor


def test_programs_do_not_inherit_the_variables_of_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD_OF_A_BOX", "hunter2")
    monkeypatch.setenv("OF_NO_DESCRIPTION", "kept")
    secret = EnvironmentSecret("PASSWORD_OF_A_BOX")
    with closing(LocalExecutor(RealClock())) as executor:
        seen = executor.run(["env"], Deadline.after(RealClock(), 60)).stdout
    assert "OF_NO_DESCRIPTION=kept" in seen
    assert "PASSWORD_OF_A_BOX" not in seen
    assert secret.reveal() == "hunter2", "the harness itself has it still"
