"""The storage network of virtual racks: its ports, and the switch as a process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.errors import LabError
from rackloop_labs.virtual_rack.prerequisites import VDE_SWITCH, found
from rackloop_labs.virtual_rack.storage_network import StorageNetwork, StoragePort

needs_switch = pytest.mark.skipif(found(VDE_SWITCH) is None, reason="needs vde_switch")


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    folder = Path("/tmp") / f"rl-storage-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_each_guest_has_a_card_and_an_address_of_its_own(tmp_path: Path) -> None:
    first, third = StoragePort.of(0, tmp_path), StoragePort.of(2, tmp_path)
    assert (first.mac, str(first.address)) == ("52:54:00:52:4c:01", "10.77.0.1/24")
    assert (third.mac, str(third.address)) == ("52:54:00:52:4c:03", "10.77.0.3/24")


@needs_switch
def test_the_switch_is_its_users_alone_and_leaves_nothing(directory: Path) -> None:
    async def run() -> None:
        network = await StorageNetwork.start(directory)
        folder = StoragePort.of(0, directory).sockets
        try:
            assert folder == network.folder
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as joining:
                joining.connect(str(folder / "ctl"))
        finally:
            await network.end()
        assert not folder.exists()
        assert network.process.returncode is not None

    asyncio.run(run())


@needs_switch
def test_the_switch_ends_with_the_process_that_started_it(directory: Path) -> None:
    script = f"""
import asyncio, os
from pathlib import Path
from rackloop_labs.virtual_rack.storage_network import StorageNetwork

async def run():
    network = await StorageNetwork.start(Path({str(directory)!r}))
    print(network.process.pid, flush=True)
    os._exit(9)

asyncio.run(run())
"""

    async def run() -> None:
        starter = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
        said, _ = await starter.communicate()
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(int(said))
            ended = asyncio.Event()
            asyncio.get_running_loop().add_reader(descriptor, ended.set)
            await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(run())
    assert not (directory / "storage-network").exists()


def test_a_switch_that_does_not_start_is_an_error_of_the_lab(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = directory / VDE_SWITCH
    program.write_text("#!/bin/sh\necho no room left >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")
    with pytest.raises(LabError, match=r"^the storage network does not start: no room left$"):
        asyncio.run(StorageNetwork.start(directory))
