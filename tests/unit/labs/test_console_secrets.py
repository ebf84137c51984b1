"""The passwords that consoles cover up."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Lock

import pytest

from rackloop.errors import BadInput
from rackloop.lab import LabState, Secret, load_lab
from rackloop_drivers.power.ipmi import IpmiBmcDriver
from rackloop_labs.consoles import RackConsoles
from tests.deadlines import CLOCK

CONSOLES = 8


class CountedSecret(Secret):
    """A secret that counts how often it was read; without a text it cannot be."""

    def __init__(self, text: str | None) -> None:
        self.reads = 0
        self._text = text
        self._lock = Lock()

    def reveal(self) -> str:
        with self._lock:
            self.reads += 1
        if self._text is None:
            raise BadInput("it is not there")
        return self._text


@pytest.fixture
def secrets() -> list[CountedSecret]:
    return [CountedSecret("hunter2"), CountedSecret("correct horse"), CountedSecret("abc"), CountedSecret(None)]


@pytest.fixture
def consoles(secrets: list[CountedSecret], tmp_path: Path) -> Iterator[RackConsoles]:
    """The consoles of a rack whose controllers have the ``secrets``, the first of them twice."""
    lab = load_lab("mock")
    controllers = {
        f"srv{number}": IpmiBmcDriver(driver="ipmi").model_copy(update={"password": secret})
        for number, secret in enumerate([secrets[0], *secrets], 1)
    }
    without = {name: server.model_copy(update={"console": None}) for name, server in lab.servers.items()}
    described = lab.model_copy(update={"servers": without})
    with closing(RackConsoles(described, CLOCK, LabState.of("mock", root=tmp_path), controllers)) as consoles:
        yield consoles


def test_each_is_read_once_for_all_consoles(secrets: list[CountedSecret], consoles: RackConsoles) -> None:
    with ThreadPoolExecutor(CONSOLES) as listening:
        asked = [listening.submit(consoles.secrets) for _ in range(CONSOLES)]
    assert [one.result() for one in asked] == [("correct horse", "hunter2")] * CONSOLES
    assert [secret.reads for secret in secrets] == [1, 1, 1, 1]
