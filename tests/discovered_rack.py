"""The simulated rack, described by `rackloop lab discover` as a physical one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackloop.lab import load_lab
from rackloop_cli.main import main
from rackloop_labs import MockLab
from tests.deadlines import CLOCK


@contextmanager
def discovered_rack(folders: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """The description of the mock rack, which is up meanwhile: its drives are not scratch. ``name`` is the lab's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RACKLOOP_STATE_HOME", str(folders.mktemp("home")))
        mock = MockLab(load_lab("mock"), CLOCK)
        mock.up()
        try:
            file = folders.mktemp("found") / "found.yaml"
            assert main(["lab", "discover", "mock", "--name", name, "--out", str(file)]) == 0
            yield file
        finally:
            mock.down()
            # All holders of a physical rack on one machine share a store, whose place this says.
            Path(f"/var/tmp/rackloop-store-of-{name}").unlink(missing_ok=True)


@contextmanager
def erasable_rack(folders: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """The same, whose owner lets every drive be erased."""
    with discovered_rack(folders, name) as file:
        file.write_text(file.read_text().replace("scratch: false", "scratch: true"))
        yield file
