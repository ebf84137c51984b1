"""The build of guests where something is wrong: what is missing, guests that do not boot, builds that are cut short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import LabError
from rackloop.lab import LabState
from rackloop_labs.virtual_rack.guest_cache import GuestCache
from rackloop_labs.virtual_rack.image import CONTENT, PACKAGES, build_image
from rackloop_labs.virtual_rack.recipe import GuestRecipe
from tests.deadlines import CLOCK
from tests.e2e.command_line import POLL_PROCESSES_S, CommandLine, Running, wait_until
from tests.virtual.conftest import GUESTS

INTERRUPT, KILL = Running.interrupt, Running.kill
OTHER_QEMU = "#!/bin/sh\necho QEMU emulator version 99.1\n"


@pytest.fixture
def image(rackloop: CommandLine) -> Path:
    """The folder of the image, which is built where it is not."""
    assert rackloop("lab", "build", "virtual").status == 0
    return GuestCache(CLOCK, root=GUESTS).image


@pytest.fixture
def guests(image: Path, tmp_path: Path) -> Path:
    """A cache that has the image, and no guest that was booted."""
    root = tmp_path / "guests"
    root.mkdir()
    (root / image.name).symlink_to(image)
    return root


@pytest.fixture
def elsewhere(guests: Path, rackloop: CommandLine) -> Iterator[CommandLine]:
    """The command line with that cache."""
    command_line = CommandLine(guests.parent, rackloop.directory)
    yield command_line
    command_line.close()


def kept(guests: Path) -> list[str]:
    """What the cache has besides the image."""
    return sorted(path.name for path in guests.iterdir() if not path.name.startswith(("image-", "build.lock")))


def test_what_is_missing_is_named_with_the_command(rackloop: CommandLine) -> None:
    rackloop("lab", "build", "virtual", PATH="/nowhere").refused(
        2, "needs qemu-system-x86_64", "sudo apt-get install --no-install-recommends qemu-system-x86"
    )


@pytest.mark.nightly
def test_the_same_packages_make_the_same_content_again(image: Path, tmp_path: Path) -> None:
    build_image(GuestRecipe(), tmp_path, CLOCK, lambda _: None)
    # A mirror may have had newer packages since.
    has_same_packages = (tmp_path / PACKAGES).read_text() == (image / PACKAGES).read_text()
    assert ((tmp_path / CONTENT).read_text() == (image / CONTENT).read_text()) is has_same_packages


@pytest.mark.nightly
def test_a_guest_that_panics_ends_the_build_with_the_end_of_its_console(guests: Path) -> None:
    recipe = GuestRecipe()
    dying = replace(recipe, append=f"{recipe.append} init=/bin/false")
    with pytest.raises(LabError, match=r"the guest ended: .*its console ends with: .*Kernel panic"):
        GuestCache(CLOCK, dying, guests).build(lambda _: None)
    assert kept(guests) == []


def test_a_guest_that_never_boots_is_given_up(guests: Path) -> None:
    with pytest.raises(LabError, match=r"the guest did not boot within 1 s; its console"):
        GuestCache(CLOCK, root=guests, boot_s=1.0).build(lambda _: None)
    assert kept(guests) == []


def test_a_guest_that_another_qemu_saved_is_not_resumed(rackloop: CommandLine, image: Path, tmp_path: Path) -> None:
    stand_in = tmp_path / "qemu-system-x86_64"
    stand_in.write_text(OTHER_QEMU)
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{rackloop.environment['PATH']}"
    ended = rackloop("run", "smoke", "--lab", "virtual", "-k", "identity", PATH=path)
    assert ended.status == 3, ended
    assert "the guests of lab virtual are not built yet, for QEMU 99.1: `rackloop lab build virtual`" in ended.out


def once_a_guest_runs(running: Running, command_line: CommandLine) -> None:
    """Return as soon as a machine of the command has been started."""
    wait_until(
        lambda: any("qemu-system" in line for line in command_line.processes().values()),
        lambda: f"no guest was started: {running.process.poll()}",
        every_s=POLL_PROCESSES_S,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("end", [INTERRUPT, KILL])
def test_a_build_that_is_cut_short_leaves_no_guest(
    elsewhere: CommandLine, guests: Path, end: Callable[[Running], None]
) -> None:
    building = elsewhere.start("lab", "build", "virtual")
    once_a_guest_runs(building, elsewhere)
    end(building)
    elsewhere.wait_until_deserted()
    assert not any(name.startswith("booted-") for name in kept(guests))


@pytest.mark.nightly
@pytest.mark.parametrize("end", [INTERRUPT, KILL])
def test_an_up_that_is_cut_short_leaves_no_guest(
    rackloop: CommandLine, image: Path, end: Callable[[Running], None]
) -> None:
    starting = rackloop.start("lab", "up", "virtual")
    once_a_guest_runs(starting, rackloop)
    end(starting)
    rackloop.wait_until_deserted()
    assert rackloop("lab", "status", "virtual").status == 3
    assert rackloop("lab", "up", "virtual").status == 0
    assert rackloop("lab", "down", "virtual").status == 0


@pytest.mark.nightly
@pytest.mark.parametrize("end", [INTERRUPT, KILL])
def test_a_run_that_is_cut_short_takes_the_rack_down_that_it_brought_up(
    rackloop: CommandLine, tmp_path: Path, end: Callable[[Running], None]
) -> None:
    out = str(tmp_path / "out")
    running = rackloop.start("run", "smoke", "--lab", "virtual", "-k", "identity", "--out", out)
    wait_until(LabState(rackloop.state_home / "labs" / "virtual").endpoints_file.exists, lambda: "not up")
    end(running)
    rackloop.wait_until_deserted()
    assert rackloop("lab", "status", "virtual").status == 3
