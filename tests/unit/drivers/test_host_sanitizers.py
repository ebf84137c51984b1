"""What drives say of erasing themselves, and what becomes of those that cannot, or do not come to the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rackloop.abilities import Completed, SanitizeMethod
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotSupported, ToolError, UnknownFormat
from rackloop_drivers.drive.host_drive._erase_ata import AtaErasure, parse_hdparm
from rackloop_drivers.drive.host_drive._erase_nvme import NvmeErasure
from rackloop_drivers.drive.host_drive._erase_scsi import ScsiErasure
from rackloop_drivers.drive.host_drive._erasing import ErasureState, Tools
from tests.unit.models.run_only_executor import RunOnlyExecutor

BLOCK, CRYPTO, OVERWRITE = SanitizeMethod.BLOCK_ERASE, SanitizeMethod.CRYPTO_ERASE, SanitizeMethod.OVERWRITE
Said = tuple[int, str, str]
DATA = Path(__file__).parent / "data" / "hdparm"
"""Printed by hdparm 9.65 (``--Istdin``) of IDENTIFY data that were made up."""
FROZEN = (DATA / "frozen.out").read_text()
DISK = (DATA / "disk.out").read_text()
FLASH = (DATA / "flash.out").read_text()
LOCKED = (DATA / "locked.out").read_text()


@dataclass
class Slow:
    """A command that does not end for so many looks."""

    looks: int
    clock: VirtualClock
    ended: Completed
    is_killed: bool = False
    is_stuck: bool = False

    def wait(self, deadline: Deadline) -> Completed:
        if self.looks:
            self.looks -= 1
            self.clock.sleep_until_ns(deadline.at_ns)
            raise DeadlineExceeded("it did not end in time")
        return self.ended

    def kill(self) -> None:
        self.is_killed = True
        if self.is_stuck:
            raise LabError("SIGKILL did not end it; it is stuck in the kernel")

    def write_line(self, line: str) -> None:
        raise AssertionError(line)

    def read_line(self, deadline: Deadline) -> str | None:
        raise AssertionError(deadline)


@dataclass
class Server(RunOnlyExecutor):
    """A server that answers tools by the words of their command line; of several answers the last one stays."""

    answers: dict[str, list[Said]]
    clock: VirtualClock = field(default_factory=VirtualClock)
    slow: Slow | None = None
    ran: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        line = " ".join(argv)
        self.ran.append(line)
        said = next(said for words, said in self.answers.items() if words in line)
        status, stdout, stderr = said.pop(0) if len(said) > 1 else said[0]
        return Completed(tuple(argv), status, stdout, stderr)

    def start(self, argv: Sequence[str]) -> Slow:
        self.ran.append(" ".join(argv))
        assert self.slow is not None
        return self.slow


def later(seconds: float = 30.0) -> Deadline:
    return Deadline.after(VirtualClock(), seconds)


def ok(*answers: str) -> list[Said]:
    return [(0, answer, "") for answer in answers]


@pytest.mark.parametrize(
    ("name", "methods", "security"),
    [
        ("flash", (BLOCK, CRYPTO), {"supported"}),
        ("disk", (OVERWRITE,), {"supported"}),
        ("disk-overwrite", (OVERWRITE,), {"supported"}),
        ("frozen", (OVERWRITE,), {"supported", "frozen"}),
        ("locked", (OVERWRITE,), {"supported", "enabled", "locked"}),
        ("neither", (), set()),
    ],
)
def test_what_hdparm_says_of_a_drive_is_understood(
    name: str, methods: tuple[SanitizeMethod, ...], security: set[str]
) -> None:
    drive = parse_hdparm((DATA / f"{name}.out").read_text(), "srv1:/dev/sdb")
    assert (drive.methods, set(drive.security)) == (methods, security)
    assert drive.minutes == {"flash": 2, "neither": None}.get(name, 120)
    assert drive.is_flash is (name == "flash")


def test_what_is_no_ata_device_is_kept_with_the_error() -> None:
    with pytest.raises(UnknownFormat, match="srv1:/dev/sdb: hdparm -I printed no ATA device") as error:
        parse_hdparm("\n/dev/sdb:\n", "srv1:/dev/sdb")
    assert error.value.raw == "\n/dev/sdb:\n"


def test_a_frozen_drive_says_what_thaws_it_and_gets_no_password() -> None:
    server = Server({"-I": ok(FROZEN)})
    with pytest.raises(LabError, match=r"security is frozen.*switch the drive off and on, or pull it and plug it in"):
        AtaErasure(Tools(server, "/dev/sdb")).begin(OVERWRITE, later(), lambda *_: None)
    assert server.ran == ["hdparm -I /dev/sdb"]


def test_a_drive_that_cannot_begin_says_so_without_being_told_anything() -> None:
    server = Server({"-I": ok(FROZEN)})
    with pytest.raises(LabError, match="security is frozen"):
        AtaErasure(Tools(server, "/dev/sdb")).require(OVERWRITE, later())
    AtaErasure(Tools(Server({"-I": ok(FLASH)}), "/dev/sdb")).require(BLOCK, later())
    shared, server = nvme(id_ctrl=ok(CAPABLE), list_ns=ok(listed(1, 2)))
    with pytest.raises(NotSupported, match="would erase all namespaces"):
        shared.require(BLOCK, later())
    assert not any("nvme sanitize" in line for line in server.ran)


def test_a_drive_with_a_password_of_somebody_else_is_left_alone() -> None:
    server = Server({"-I": ok(LOCKED)})
    with pytest.raises(LabError, match="has a password already"):
        AtaErasure(Tools(server, "/dev/sdb")).begin(OVERWRITE, later(), lambda *_: None)
    assert server.ran == ["hdparm -I /dev/sdb"]


def test_a_security_erase_tells_how_long_it_takes_by_the_drives_own_account() -> None:
    server = Server({"-I": ok(DISK), "--security-set-pass": ok("")})
    server.slow = Slow(2, server.clock, Completed(("hdparm",), 0, "", ""))
    said: list[tuple[float | None, str]] = []
    deadline = Deadline.after(server.clock, 3600)
    AtaErasure(Tools(server, "/dev/sdb")).begin(OVERWRITE, deadline, lambda *told: said.append(told))
    assert [told[0] for told in said] == [pytest.approx(1 / 7200), pytest.approx(2 / 7200)]
    assert said[0][1] == "of the 120 min that the drive takes by its own account"
    assert server.ran[1:3] == [
        "hdparm --user-master u --security-set-pass rackloop /dev/sdb",
        "hdparm --user-master u --security-erase rackloop /dev/sdb",
    ]


@pytest.mark.parametrize(("looks", "is_stuck"), [(0, False), (10_000, False), (10_000, True)])
def test_a_security_erase_that_fails_or_takes_too_long_tells_of_its_password(looks: int, *, is_stuck: bool) -> None:
    server = Server({"-I": ok(DISK), "--security-set-pass": ok("")})
    failed = Completed(("hdparm", "/dev/sdb"), 5, "", "SECURITY_ERASE: Input/output error\n")
    server.slow = Slow(looks, server.clock, failed, is_stuck=is_stuck)
    deadline = Deadline.after(server.clock, 60)
    with pytest.raises(LabError, match=r"Its password is 'rackloop' until .* `rackloop heal` takes it away") as error:
        AtaErasure(Tools(server, "/dev/sdb")).begin(OVERWRITE, deadline, lambda *_: None)
    assert isinstance(error.value, DeadlineExceeded) is bool(looks)
    assert server.slow.is_killed


def test_a_password_that_is_not_ours_is_named_by_heal() -> None:
    refused: Said = (5, "", "SECURITY_UNLOCK: Input/output error\n")
    server = Server({"-I": ok(LOCKED), "--security-disable": [refused]})
    with pytest.raises(LabError, match="--security-disable rackloop failed: SECURITY_UNLOCK: Input/output error"):
        AtaErasure(Tools(server, "/dev/sdb")).end(later())


ATA_STATUS = "\n/dev/sdb:\nIssuing SANITIZE_STATUS command\nSanitize status:\n    State:    {}\n"


@pytest.mark.parametrize(
    ("said", "state", "fraction"),
    [
        ((0, ATA_STATUS.format("SD0 Sanitize Idle"), ""), ErasureState.OVER, None),
        (
            (0, ATA_STATUS.format("SD2 Sanitize operation In Process\n    Progress: 0x7fff (50%)"), ""),
            ErasureState.UNDER_WAY,
            0.5,
        ),
        (
            (5, "", "SANITIZE failed: Input/output error\nDrive in SD3 Sanitize Operation Failed state\n"),
            ErasureState.FAILED,
            None,
        ),
    ],
)
def test_how_far_an_ata_sanitize_is(said: Said, state: ErasureState, fraction: float | None) -> None:
    erasure = AtaErasure(Tools(Server({"-I": ok(FLASH), "--sanitize-status": [said]}), "/dev/sdb"))
    seen = erasure.seen(later())
    assert (seen.state, seen.fraction) == (state, fraction)
    if state is ErasureState.FAILED:
        with pytest.raises(LabError, match="failed to sanitize itself, and refuses reads and writes"):
            erasure.end(later())


def test_an_ata_drive_that_took_the_command_and_completed_none_has_not_erased_itself() -> None:
    idle = ATA_STATUS.format("SD0 Sanitize Idle")
    done = f"{idle}    Last Sanitize Operation Completed Without Error\n"
    server = Server({"-I": ok(FLASH), "--sanitize-status": ok(done, idle), "--sanitize-": ok("")})
    erasure = AtaErasure(Tools(server, "/dev/sdb"))
    erasure.begin(BLOCK, later(), lambda *_: None)
    assert erasure.seen(later()).state is ErasureState.OVER
    with pytest.raises(LabError, match="took the sanitize command, and says that none completed without error"):
        erasure.seen(later())


def nvme_log(sprog: int, status: int, key: str = "status") -> str:
    return json.dumps({"nvme0n1": {"sprog": sprog, "sstat": {"global_erased": 0, key: f"({status}) So it is."}}})


CAPABLE = json.dumps({"sanicap": 7, "oacs": 0, "fna": 0, "nn": 1, "cmic": 0})
FORMATS = json.dumps({"sanicap": 0, "oacs": 0x10A, "fna": 0x4, "nn": 256, "cmic": 0})
REFUSED: list[Said] = [(1, "", "NVMe status: Invalid Field in Command: A reserved coded value(0x4002)\n")]


def listed(*nsids: int) -> str:
    """What ``nvme list-ns -o json`` prints."""
    return json.dumps({"nsid_list": [{"nsid": nsid} for nsid in nsids]})


def nvme(**answers: list[Said]) -> tuple[NvmeErasure, Server]:
    """The erasure of ``/dev/nvme0n1``, namespace 1; ``list-ns`` is refused where it is not among the answers."""
    given = {words.replace("_", "-"): said for words, said in answers.items()}
    server = Server({**given, "/nsid": ok("1\n"), "list-ns": given.get("list-ns", REFUSED)})
    return NvmeErasure(Tools(server, "/dev/nvme0n1")), server


@pytest.mark.parametrize(
    ("controller", "methods"),
    [
        (CAPABLE, (BLOCK, CRYPTO, OVERWRITE)),
        (FORMATS, (BLOCK, CRYPTO)),
        (json.dumps({"sanicap": 0, "oacs": 2, "fna": 0}), (BLOCK,)),
        (json.dumps({"sanicap": 0, "oacs": 0, "fna": 4}), ()),
    ],
)
def test_an_nvme_drive_sanitizes_itself_else_formats(controller: str, methods: tuple[SanitizeMethod, ...]) -> None:
    erasure, _ = nvme(id_ctrl=ok(controller))
    assert erasure.methods(later()) == methods


@pytest.mark.parametrize(
    ("namespace", "kept"),
    [
        ({"flbas": 0x12, "dps": 0}, "--lbaf=2 --ms=1 --pi=0 --pil=0"),
        ({"flbas": 0x02, "dps": 0x9}, "--lbaf=2 --ms=0 --pi=1 --pil=1"),
        ({"flbas": 0x23, "dps": 0x2}, "--lbaf=19 --ms=0 --pi=2 --pil=0"),
    ],
    ids=["metadata", "protection", "many formats"],
)
def test_a_format_keeps_that_of_the_drive_and_takes_it_while_it_is_held(namespace: dict[str, int], kept: str) -> None:
    erasure, server = nvme(id_ctrl=ok(FORMATS), id_ns=ok(json.dumps(namespace)), format=ok("Success"))
    erasure.begin(CRYPTO, later(), lambda *_: None)
    assert f"nvme format --ses=2 {kept} --timeout=3600000 --force /dev/nvme0n1" in server.ran
    assert erasure.seen(later()).state is ErasureState.OVER


def test_a_drive_that_took_the_command_and_was_never_sanitized_has_not_erased_itself() -> None:
    erasure, _ = nvme(id_ctrl=ok(CAPABLE), sanitize_log=ok(nvme_log(0xFFFF, 0)), sanitize=ok(""))
    assert erasure.seen(later()).state is ErasureState.OVER
    erasure.begin(CRYPTO, later(), lambda *_: None)
    with pytest.raises(LabError, match="took the sanitize command, and says it was never sanitized"):
        erasure.seen(later())


def controller(**fields: int) -> list[Said]:
    return ok(json.dumps(json.loads(CAPABLE) | fields))


MANAGED = {"oacs": 0x8, "nn": 32}
TEXT = "[   0]:0x1\n"
OTHER_TEXT = TEXT + "[   1]:0xa\n"
# What getopt of a version without it says.
NO_FORMAT: Said = (22, "", "list-ns: unrecognized option '--output-format=json'\n")


@pytest.mark.parametrize(
    ("fields", "lists"),
    [
        (MANAGED, {"--all": ok(listed(1))}),
        (MANAGED, {"--all": ok(TEXT)}),
        (MANAGED, {"--all --output-format": [NO_FORMAT], "--all": ok(TEXT)}),
        ({"oacs": 0x8, "nn": 1}, {}),
        ({"nn": 1, "cmic": 0x2}, {}),
        ({"nn": 256}, {"--all": REFUSED, "": ok(listed(1))}),
        ({"nn": 256}, {"--all": ok(""), "": ok(TEXT)}),
    ],
)
def test_a_namespace_that_is_the_only_one_of_its_subsystem_is_sanitized(
    fields: dict[str, int], lists: dict[str, list[Said]]
) -> None:
    answers = {f"list-ns {words}".rstrip(): said for words, said in lists.items()}
    erasure, server = nvme(id_ctrl=controller(**fields), **answers, sanitize=ok(""))
    erasure.begin(BLOCK, later(), lambda *_: None)
    assert "nvme sanitize --sanact=2 /dev/nvme0n1" in server.ran


@pytest.mark.parametrize(
    ("fields", "lists", "why"),
    [
        (MANAGED, {"--all": ok(listed(1, 10)), "": ok(listed(1))}, "of which it is 1 and there are 1, 10: delete"),
        (MANAGED, {"--all": ok(OTHER_TEXT), "": ok(TEXT)}, "of which it is 1 and there are 1, 10: delete"),
        (MANAGED, {"--all": ok(listed(2))}, "of which it is 1 and there are 2"),
        (MANAGED, {"--all": REFUSED, "": ok(listed(1))}, r"does not tell which are .* besides 1 \(up to 32 may be\)"),
        ({"nn": 256}, {"--all": REFUSED, "": ok(listed(1, 2))}, "of which it is 1 and there are 1, 2"),
        ({"nn": 256, "cmic": 0x2}, {"--all": REFUSED, "": ok(listed(1))}, "does not tell which"),
    ],
    ids=["unattached", "unattached, as text", "another", "managed, not told", "visible", "of another controller"],
)
def test_a_namespace_that_may_not_be_the_only_one_of_its_subsystem_is_not_sanitized(
    fields: dict[str, int], lists: dict[str, list[Said]], why: str
) -> None:
    answers = {f"list-ns {words}".rstrip(): said for words, said in lists.items()}
    erasure, server = nvme(id_ctrl=controller(**fields), **answers, sanitize=ok(""))
    with pytest.raises(NotSupported, match=why):
        erasure.begin(BLOCK, later(), lambda *_: None)
    assert not any("nvme sanitize" in line for line in server.ran)


@pytest.mark.parametrize("fna", [0x1, 0x2, 0x5])
def test_a_format_of_all_namespaces_is_refused_where_there_are_others(fna: int) -> None:
    formats = controller(sanicap=0, oacs=0x10A, fna=fna, nn=256)
    erasure, server = nvme(id_ctrl=formats, list_ns=ok(listed(1, 2)), format=ok("Success"))
    with pytest.raises(NotSupported, match="there are 1, 2: delete the others first"):
        erasure.begin(BLOCK, later(), lambda *_: None)
    assert not any("nvme format" in line for line in server.ran)
    erasure, server = nvme(id_ctrl=formats, list_ns=ok(listed(1)), id_ns=ok("{}"), format=ok("Success"))
    erasure.begin(BLOCK, later(), lambda *_: None)
    assert any("nvme format" in line for line in server.ran)


def test_a_format_of_one_namespace_leaves_the_others() -> None:
    erasure, _ = nvme(id_ctrl=ok(FORMATS), list_ns=ok(listed(1, 2)))
    erasure.require(CRYPTO, later())


def test_namespaces_that_cannot_be_asked_for_are_not_taken_for_none() -> None:
    denied: list[Said] = [(1, "", "id namespace list: Permission denied\n")]
    erasure, _ = nvme(id_ctrl=ok(CAPABLE), list_ns=denied)
    with pytest.raises(LabError, match="nvme list-ns --all failed: id namespace list: Permission denied"):
        erasure.require(BLOCK, later())
    erasure, _ = nvme(id_ctrl=ok(CAPABLE), list_ns=ok("1 namespace"))
    with pytest.raises(UnknownFormat, match="another list of namespaces"):
        erasure.require(BLOCK, later())


@pytest.mark.parametrize("key", ["status", "Sanitize in Progress."])
def test_how_far_an_nvme_sanitize_is(key: str) -> None:
    logs = [nvme_log(0x3FFF, 2, key), nvme_log(0xFFFF, 1, key), nvme_log(0xFFFF, 3, key)]
    erasure, _ = nvme(id_ctrl=ok(CAPABLE), sanitize_log=ok(*logs))
    seen = [erasure.seen(later()) for _ in logs]
    assert [each.state for each in seen] == [ErasureState.UNDER_WAY, ErasureState.OVER, ErasureState.FAILED]
    assert [each.fraction for each in seen] == [0.25, None, None]
    assert seen[0].said == "25% done"
    with pytest.raises(LabError, match="failed to sanitize itself"):
        erasure.end(later())


@pytest.mark.parametrize("log", ["", "[]", "{}", '{"nvme0": {"sprog": 1}}', '{"nvme0": {"sstat": {"status": "(1)"}}}'])
def test_a_sanitize_log_of_another_shape_is_kept_with_the_error(log: str) -> None:
    erasure, _ = nvme(id_ctrl=ok(CAPABLE), sanitize_log=ok(log))
    with pytest.raises(UnknownFormat, match=r"known here: the fields of nvme-cli 2\.3") as error:
        erasure.seen(later())
    assert error.value.raw == log


def scsi(**answers: list[Said]) -> ScsiErasure:
    return ScsiErasure(Tools(Server(dict(answers)), "/dev/sda"))


@pytest.mark.parametrize("said", ["  Command supported [conforming", "  Command is supported [in a vendor"])
def test_a_scsi_drive_offers_what_it_reports(said: str) -> None:
    erasure = scsi(
        **{"0x48,1": ok(said), "0x48,2": ok("  Command is NOT supported"), "0x48,3": [(9, "", "Illegal request")]}
    )
    assert erasure.methods(later()) == (OVERWRITE,)


def test_how_far_a_scsi_sanitize_is() -> None:
    erasure = scsi(sg_requests=ok("Progress indication: 12.50% done\n"))
    assert (erasure.seen(later()).state, erasure.seen(later()).fraction) == (ErasureState.UNDER_WAY, 0.125)
    states = {2: ErasureState.UNDER_WAY, 6: ErasureState.UNDER_WAY, 0: ErasureState.OVER, 3: ErasureState.FAILED}
    for status, state in states.items():
        assert scsi(sg_requests=ok(""), sg_turs=[(status, "", "")]).seen(later()).state is state


@pytest.mark.parametrize(
    ("make", "package"), [(AtaErasure, "hdparm"), (NvmeErasure, "nvme-cli"), (ScsiErasure, "sg3-utils")]
)
def test_a_tool_that_is_missing_is_named_with_its_package(
    make: Callable[[Tools], AtaErasure | NvmeErasure | ScsiErasure], package: str
) -> None:
    server = Server({"": [(127, "", "not found")]})
    with pytest.raises(ToolError, match=f"was not found on this machine: install its package {package} there"):
        make(Tools(server, "/dev/sda")).methods(later())
