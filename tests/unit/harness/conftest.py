"""The rack in memory that tests of the core act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.harness.journalled_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A simulated rack whose acts are journalled."""
    with closing(Bench(tmp_path)) as bench:
        yield bench
