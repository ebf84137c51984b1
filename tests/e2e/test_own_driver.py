"""Drivers of another distribution: built, installed, named in lab descriptions, held to their contracts, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine, Results

PACKAGE = Path(__file__).parents[1] / "own_driver"
SWITCHED = """
name: acme
kind: mock
fabric: {driver: acme_switch, shelf: 3, ports: 40}
servers:
  srv1: {stack: comreset, ports: {p0: 1}, bmc: acme_controller, outlet: strip1/1}
  srv2: {stack: comreset, ports: {p0: 5}, outlet: strip1/2}
pdus:
  strip1: {driver: acme_strip, outlets: 8, bank: 2}
drives:
  d01: {profile: sata-ssd, serial: RL000001, wwn: 5000c500a0000001, size: 64 MiB, port: 21, scratch: true}
  d02: {profile: sata-ssd, serial: RL000002, wwn: 5000c500a0000002, size: 64 MiB, port: 22, scratch: true}
baseline: {srv1: {p0: d01}, srv2: {p0: d02}}
"""
CABLED = """
name: breaker
kind: mock
fabric: {driver: static}
phy: {driver: acme_breaker}
servers:
  srv1: {stack: comreset, ports: {p0, p1}}
drives:
  d01: {profile: sata-ssd, serial: RL000001, wwn: 5000c500a0000001, size: 64 MiB, attached: srv1/p0, scratch: true}
"""
OWN_TEST = """
import pytest
from rackloop.clock import Deadline
from rackloop.faults import FaultSpec

PARAMETERS = {"kind": "", "target": ""}
MEASURES = {"remaps": "1"}
pytestmark = pytest.mark.rackloop(
    purpose="break a part of the rack by a driver of one's own", requires=[], destructive=True, time_class="seconds"
)

def test_broken(rack, parameters):
    with rack.watching({"srv1": "p0"}) as reads:
        with rack.faults.injected(FaultSpec(parameters["kind"], parameters["target"], {"down_s": 0.05})):
            pass
    assert reads.results["srv1"].wrong == 0

def test_without_power(rack, parameters):
    power = rack.bench.equipment.power["server:srv2"]
    with rack.faults.injected(FaultSpec("power_loss", parameters["target"])):
        assert not power.is_on(Deadline.after(rack.clock, 20))
    assert power.is_on(Deadline.after(rack.clock, 20))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built and installed into a folder of its own."""
    source = tmp_path_factory.mktemp("source") / "own_driver"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("installed")
    how = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "install", *how, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def acme(rackloop: CommandLine, installed: Path) -> CommandLine:
    """The command line where the package is installed."""
    rackloop.environment["PYTHONPATH"] = f"{installed}{os.pathsep}{rackloop.environment.get('PYTHONPATH', '')}"
    (rackloop.directory / "acme.yaml").write_text(SWITCHED)
    (rackloop.directory / "breaker.yaml").write_text(CABLED)
    mine = rackloop.directory / "mine" / "a"
    mine.mkdir(parents=True)
    (mine / "test_own.py").write_text(OWN_TEST)
    return rackloop


def test_the_drivers_keep_their_contracts(acme: CommandLine) -> None:
    # Away from this tree, whose conftest.py is not theirs.
    shutil.copytree(PACKAGE / "contracts", acme.directory / "contracts")
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = subprocess.run(
        [*command, "-c", os.devnull, "contracts"],
        cwd=acme.directory,
        env=acme.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 passed" in done.stdout


def test_a_description_names_them(acme: CommandLine) -> None:
    assert acme("lab", "check", "acme.yaml").status == 0
    wrong = SWITCHED.replace("bank: 2", "bnak: 2").replace("shelf: 3", "shelf: 12")
    (acme.directory / "acme.yaml").write_text(wrong.replace("acme_controller", "acme_controler"))
    acme("lab", "check", "acme.yaml").refused(
        2,
        "acme.yaml:4:38: fabric.shelf: expected a whole number from 1 to 9, found '12'",
        "acme.yaml:6:48: servers.srv1.bmc.driver: 'acme_controler' is not known here; did you mean 'acme_controller'?",
        "acme.yaml:9:44: pdus.strip1.bnak: unknown key; did you mean 'bank'?",
    )


def test_a_plan_runs_with_them(acme: CommandLine) -> None:
    plan = acme.plan(
        {"test": "a/own::test_broken", "with": {"kind": "phy_drop", "target": "srv1.p0"}},
        {"test": "a/own::test_without_power", "with": {"target": "strip1/2"}},
    )
    ended = acme("run", plan, "--testplans", "mine", "--lab", "acme.yaml", "--out", "out", "--seed", "1")
    assert ended.status == 0, ended.out
    assert Results(acme.directory / "out").summary["verdict"] == "pass"


def test_links_are_broken_by_a_box_of_ones_own(acme: CommandLine) -> None:
    plan = acme.plan({"test": "a/own::test_broken", "with": {"kind": "phy_drop", "target": "srv1.p0"}})
    ended = acme("run", plan, "--testplans", "mine", "--lab", "breaker.yaml", "--out", "out", "--seed", "1")
    assert ended.status == 0, ended


def test_power_is_shown_and_switched_through_them(acme: CommandLine) -> None:
    assert acme("lab", "up", "acme.yaml").status == 0
    try:
        assert "acme_controller" in acme("power", "acme.yaml", "show").out
        assert acme("power", "acme.yaml", "cycle", "srv1").status == 0
        where = acme.endpoints("acme.yaml")
        assert where["pdu"]["strip1"]["driver"] == "acme_strip"
    finally:
        assert acme("lab", "down", "acme.yaml").status == 0


def test_without_the_package_its_names_are_unknown(acme: CommandLine, installed: Path) -> None:
    path = acme.environment["PYTHONPATH"].replace(f"{installed}{os.pathsep}", "")
    acme("lab", "check", "acme.yaml", PYTHONPATH=path).refused(
        2, "pdus.strip1.driver: 'acme_strip' is not known here; known: apc, cyberpower, redfish"
    )


BROKEN = """
from rackloop.lab import Pdu
from rackloop_drivers.boxes import PduDriver

class NotOpened(PduDriver):
    pass

class NotDerived(Pdu):
    def open(self, opening): ...
"""


def units_of(rackloop: CommandLine, packages: Mapping[str, Mapping[str, str]], module: str) -> str:
    """The path of packages whose units lab.yaml names, from ``module``."""
    for package, registered in packages.items():
        metadata = rackloop.directory / f"{package}-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        lines = [f"pdu.{name} = {value}" for name, value in registered.items()]
        (metadata / "entry_points.txt").write_text("\n".join(["[rackloop.drivers]", *lines]))
    (rackloop.directory / "broken.py").write_text(module)
    pdus = "".join(f"  {name}: {{driver: {name}, outlets: 4}}\n" for name in packages["broken"])
    (rackloop.directory / "lab.yaml").write_text(CABLED.replace("phy: {driver: acme_breaker}", f"pdus:\n{pdus}"))
    return f"{rackloop.directory}{os.pathsep}{rackloop.environment.get('PYTHONPATH', '')}"


def test_a_driver_that_cannot_be_used_says_why(rackloop: CommandLine) -> None:
    entries = {"closed": "broken:NotOpened", "core": "broken:NotDerived", "gone": "broken.gone:X", "twice": "broken:X"}
    path = units_of(rackloop, {"broken": entries, "other": {"twice": "broken:Y"}}, BROKEN)
    rackloop("lab", "check", "lab.yaml", PYTHONPATH=path).refused(
        2,
        "pdus.closed.driver: the driver pdu.closed (broken:NotOpened) is no driver of a pdu",
        "pdus.core.driver: the driver pdu.core (broken:NotDerived) is no driver of a pdu",
        "pdus.gone.driver: the driver pdu.gone (broken.gone:X) cannot be loaded: No module named 'broken.gone'",
        "pdus.twice.driver: the driver pdu.twice (broken:X and broken:Y) is registered by two packages",
    )
    assert "cannot be loaded" in rackloop("driver", "list", PYTHONPATH=path).out
    assert rackloop("lab", "check", "--schema", PYTHONPATH=path).status == 0


ENDS = """
import sys
from rackloop_drivers.boxes import PduDriver

class Ends(PduDriver):
    def open(self, opening): ...
    def lacking(self):
        sys.exit("the SDK of the strip is not there")
"""


@pytest.mark.parametrize(
    ("module", "status", "said"),
    [
        ("import sys\nsys.exit(0)\n", 2, "pdu.ends (broken:Ends) cannot be loaded: SystemExit(0)"),
        (ENDS, 3, "rackloop: the SDK of the strip is not there"),
    ],
    ids=["as it is loaded", "later"],
)
def test_a_driver_that_ends_the_program_is_no_pass(rackloop: CommandLine, module: str, status: int, said: str) -> None:
    path = units_of(rackloop, {"broken": {"ends": "broken:Ends"}}, module)
    rackloop("lab", "check", "lab.yaml", PYTHONPATH=path).refused(status, said)
