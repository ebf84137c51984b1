"""``smp_discover`` and ``smp_phy_control`` of smp_utils 0.99 on the expanders and HBA ports of a mock server.

The expander's PHYs are those of its slots, then the one to the server. An HBA port (``/dev/bsg/sas_hostN``) has PHY 0.
As the real ones, they exit 0 after the usage for an option they do not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackloop_labs.mock_hosts._sysfs_ports import AttachedDevice, far_end
from rackloop_labs.mock_hosts._view import Answer, HbaPort, HostActs, HostView
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_BAD_ARGUMENT = 91
_NO_DEVICE = 92
_FUNCTION_FAILED = 2
_NO_PHY = 16
_LAST_PHY = 254
# Codes of the negotiated link rate.
_UNKNOWN, _DISABLED, _GBIT_6 = 0, 1, 10
_RATES = {_UNKNOWN: "phy enabled; unknown", _DISABLED: "phy disabled", _GBIT_6: "phy enabled, 6 Gbps"}
_OPERATIONS = ("nop", "lr", "hr", "dis", "cel", "ca", "tspss", "citnl", "sadn")


@dataclass(frozen=True)
class _Tool:
    """A tool of smp_utils: its name, version, options (see :meth:`Options.of`) and usage."""

    name: str
    version: str
    flags: Mapping[str, str]
    valued: Mapping[str, str]
    usage: str


_DISCOVER = _Tool(
    name="smp_discover",
    version="1.62 20190124",
    flags={
        "-A": "adn", "--adn": "adn", "-b": "brief", "--brief": "brief", "-D": "dsn", "--dsn": "dsn", "-h": "help",
        "--help": "help", "-i": "ignore", "--ignore": "ignore", "-l": "list", "--list": "list", "-m": "multiple",
        "--multiple": "multiple", "-M": "my", "--my": "my", "-S": "summary", "--summary": "summary",
        "-v": "verbose", "--verbose": "verbose", "-V": "version", "--version": "version", "-z": "zero",
        "--zero": "zero",
    },
    valued={"-p": "phy", "--phy": "phy", "-n": "num", "--num": "num", "-s": "sa", "--sa": "sa"},
    usage="""Usage: smp_discover [--adn] [--brief] [--dsn] [--help] [--ignore] [--list]
                    [--multiple] [--my] [--num=NUM] [--phy=ID] [--sa=SAS_ADDR]
                    [--summary] [--verbose] [--version] [--zero] SMP_DEVICE

Send SMP DISCOVER to an expander of a mock server (/dev/bsg/expander-H:0) or to an HBA port (/dev/bsg/sas_hostH).
""",
)  # fmt: skip
_CONTROL = _Tool(
    name="smp_phy_control",
    version="1.25 20180725",
    flags={
        "-h": "help", "--help": "help", "-v": "verbose", "--verbose": "verbose", "-V": "version",
        "--version": "version",
    },
    valued={
        "-p": "phy", "--phy": "phy", "-o": "op", "--op": "op", "-s": "sa", "--sa": "sa", "-E": "expected",
        "--expected": "expected",
    },
    usage="""Usage: smp_phy_control [--expected=EX] [--help] [--op=OP] [--phy=ID]
                       [--sa=SAS_ADDR] [--verbose] [--version] SMP_DEVICE

Reset (lr, hr) or disable (dis) the link of an HBA port of a mock server: PHY 0 of /dev/bsg/sas_hostH, or the last
PHY of /dev/bsg/expander-H:0, which leads to it. What else a PHY can be told fails.
""",
)  # fmt: skip


@dataclass(frozen=True)
class _Phy:
    """A PHY as DISCOVER tells of it. ``port`` is the HBA port whose link it is, None for that of a slot."""

    number: int
    end: AttachedDevice
    rate: int
    routing: str
    port: HbaPort | None

    @property
    def initiators(self) -> tuple[str, ...]:
        """The protocols that the far end starts."""
        return ("SSP", "STP", "SMP") if self.end.protocol == "hba" else ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The protocols that the far end answers."""
        return {"sas": ("SSP",), "sata": ("SATA",), "smp": ("SMP",)}.get(self.end.protocol, ())


def smp_discover(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:  # noqa: ARG001 - it only looks
    """The far ends of the PHYs of an expander or an HBA port; see ``--help`` for the options."""
    options = _options(argv, _DISCOVER)
    if isinstance(options, Answer):
        return options
    found = _target(options, view, "Discover")
    if isinstance(found, Answer):
        return found
    address, phys, wanted = found
    first = wanted or 0
    if "my" in options.flags:
        return Answer(f"0x{address}\n")
    if wanted is None or {"multiple", "summary"} & set(options.flags):
        number = options.value("num") or "0"
        if not number.isdigit():
            return Answer(stderr="bad argument to '--num'\n", status=_BAD_ARGUMENT)
        count = int(number) or len(phys)
        return Answer("".join(_summary(phys[first : first + count], options)))
    phy = phys[first]
    if "list" in options.flags:
        return Answer("".join(_listed(phy, address)))
    return Answer("".join(f"{line}\n" for line in _response(phy, address, options.flags.count("brief"))))


def smp_phy_control(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """Reset or disable the link of an HBA port, as its own PHY or as the PHY of the expander at its other end.

    A reset of a disabled link enables it. Exits 2 for what a mock rack cannot do, such as a reset of a slot's PHY.
    """
    options = _options(argv, _CONTROL)
    if isinstance(options, Answer):
        return options
    op = options.value("op") or "nop"
    if op.isdigit() and int(op) < len(_OPERATIONS):
        op = _OPERATIONS[int(op)]
    if op not in _OPERATIONS:
        names = "".join(f"    {name}\n" for name in _OPERATIONS)
        text = f"bad argument to '--op'\n  Valid operation abbreviations are:\n{names}"
        return Answer(stderr=text, status=_BAD_ARGUMENT)
    found = _target(options, view, "Phy control")
    if isinstance(found, Answer):
        return found
    _, phys, wanted = found
    port = phys[wanted or 0].port
    if op == "nop" and port is not None:
        return Answer()
    act = {"lr": acts.reset_link, "hr": acts.reset_link, "dis": acts.disable_link}.get(op)
    if port is None or act is None:
        return Answer(stderr="Phy control result: SMP function failed\n", status=_FUNCTION_FAILED)
    act(port)
    return Answer()


def _options(argv: Sequence[str], tool: _Tool) -> Options | Answer:
    try:
        options = Options.of(argv, flags=tool.flags, valued=tool.valued)
    except OptionError as error:
        return Answer(stderr=f"{tool.name}: {error}\n{tool.usage}")
    if "help" in options.flags:
        return Answer(tool.usage)
    if "version" in options.flags:
        return Answer(stderr=f"version: {tool.version}\n")
    return options


def _phy_id(options: Options) -> int | Answer | None:
    text = options.value("phy")
    if text is None:
        return None
    if text.isdigit() and int(text) <= _LAST_PHY:
        return int(text)
    return Answer(stderr="bad argument to '--phy', expect value from 0 to 254\n", status=_BAD_ARGUMENT)


def _target(options: Options, view: HostView, function: str) -> tuple[str, list[_Phy], int | None] | Answer:
    """The SAS address and the PHYs of the device on the command line, and which of them is asked for, if one is."""
    wanted = _phy_id(options)
    if isinstance(wanted, Answer):
        return wanted
    found = _device(options, view)
    if isinstance(found, Answer):
        return found
    address, phys = found
    if wanted is not None and wanted >= len(phys):
        return Answer(stderr=f"{function} result: Phy does not exist\n", status=_NO_PHY)
    return address, phys, wanted


def _device(options: Options, view: HostView) -> tuple[str, list[_Phy]] | Answer:
    if not options.operands:
        text = "missing device name on command line\n    [Could use environment variable SMP_UTILS_DEVICE instead]\n"
        return Answer(stderr=f"{text}\n", status=_BAD_ARGUMENT)
    name = options.operands[0].removeprefix("/dev/bsg/")
    for expander in view.expanders:
        if name == f"expander-{expander.port.index}:0":
            drives = {drive.slot: drive for drive in view.drives if drive.expander == expander}
            phys = []
            for slot in range(expander.slots):
                drive = drives.get(slot)
                end = (
                    AttachedDevice("none", "0" * 16, "none")
                    if drive is None
                    else AttachedDevice("end device", drive.sas_address, drive.protocol)
                )
                phys.append(_Phy(slot, end, _UNKNOWN if drive is None else _GBIT_6, "D", None))
            up = AttachedDevice("end device", expander.port.sas_address, "hba")
            return expander.sas_address, [*phys, _Phy(expander.slots, up, _GBIT_6, "S", expander.port)]
    for port in view.ports:
        if not port.is_present:
            continue
        end = far_end(view, port)
        if name == f"sas_host{port.index}" and end.protocol != "sata":
            rate = _DISABLED if not port.is_enabled else _GBIT_6 if port.is_linked else _UNKNOWN
            return port.sas_address, [_Phy(0, end, rate, "D", port)]
    text = f"smp_initiator_open: failed to open {options.operands[0]}\n"
    return Answer(stderr=text, status=_NO_DEVICE)


def _summary(phys: Sequence[_Phy], options: Options) -> Iterator[str]:
    """One line a PHY; without ``--multiple``, or with ``--brief``, only of those that are in use."""
    brief = options.flags.count("brief") + ("multiple" not in options.flags)
    for phy in phys:
        if phy.rate == _DISABLED:
            if brief < 2:
                yield f"  phy {phy.number:3}:{phy.routing}:disabled\n"
        elif phy.end.kind == "none":
            if not brief:
                yield f"  phy {phy.number:3}:{phy.routing}:attached:[{'0' * 16}:00]\n"
        else:
            kind = "exp " if phy.end.kind == "edge expander" else ""
            protocols = f" i({'+'.join(phy.initiators)})" if phy.initiators else ""
            protocols += f" t({'+'.join(phy.targets)})" if phy.targets else ""
            speed = "  6 Gbps" if brief < 2 and "adn" not in options.flags else ""
            yield f"  phy {phy.number:3}:{phy.routing}:attached:[{phy.end.address}:00 {kind}{protocols}]{speed}\n"


def _response(phy: _Phy, address: str, brief: int) -> Iterator[str]:
    """Every field, as an expander of SAS-1.1 answers."""
    yield f"Discover response{' (brief)' if brief else ''}:"
    yield f"  phy identifier: {phy.number}"
    kinds = {"none": "no device attached", "edge expander": "expander device"}
    yield f"  attached SAS device type: {kinds.get(phy.end.kind, 'SAS or SATA device')}"
    if brief > 1 and phy.end.kind == "none":
        return
    yield f"  negotiated logical link rate: {_RATES[phy.rate]}"
    starts, answers = set(phy.initiators), set(phy.targets)
    flags = " ".join(f"{name.lower()}={int(name in starts)}" for name in ("SSP", "STP", "SMP"))
    yield f"  attached initiator: {flags} sata_host=0"
    if not brief:
        yield "  attached sata port selector: 0"
        yield "  STP buffer too small: 0"
    flags = " ".join(f"{name.lower()}={int(name in answers)}" for name in ("SSP", "STP", "SMP"))
    yield f"  attached target: {flags} sata_device={int('SATA' in answers)}"
    yield f"  SAS address: 0x{address}"
    yield f"  attached SAS address: {int(phy.end.address, 16):#x}"
    yield "  attached phy identifier: 0"
    if not brief:
        for reach in ("minimum", "maximum"):
            for whose in ("programmed", "hardware"):
                yield f"  {whose} {reach} physical link rate: {'1.5' if reach == 'minimum' else '6'} Gbps"
        yield f"  phy change count: {_changes(phy)}"
        yield "  virtual phy: 0"
        yield "  partial pathway timeout value: 7 microsecs"
    yield f"  routing attribute: {'subtractive' if phy.routing == 'S' else 'direct'}"
    if not brief:
        yield "  connector type: SAS Drive backplane receptacle (SFF-8482)(maximum physical links: 2)"
        yield f"  connector element index: {phy.number}"
        yield "  connector physical link: 0"
        yield "  phy power condition: active"
        for name in ("sas power", "sas slumber", "sas partial", "sata slumber", "sata partial"):
            yield f"  {name} capable: 0"
        yield "  pwr_dis signal: not capable"
        yield "  pwr_dis control capable: 0"
        for name in ("sas slumber", "sas partial", "sata slumber", "sata partial"):
            yield f"  {name} enabled: 0"


def _listed(phy: _Phy, address: str) -> Iterator[str]:
    """Every field as attribute=value; those that are zero on every PHY here by name."""
    starts, answers = set(phy.initiators), set(phy.targets)
    values = dict.fromkeys(_ALWAYS_ZERO, "0") | {
        "att_dev_type": {"none": "0", "edge expander": "2"}.get(phy.end.kind, "1"),
        "att_sas_addr": f"{int(phy.end.address, 16):#x}",
        "att_sata_dev": str(int("SATA" in answers)),
        "att_smp_init": str(int("SMP" in starts)),
        "att_smp_targ": str(int("SMP" in answers)),
        "att_ssp_init": str(int("SSP" in starts)),
        "att_ssp_targ": str(int("SSP" in answers)),
        "att_stp_init": str(int("STP" in starts)),
        "conn_elem_ind": str(phy.number),
        "conn_type": "32",
        "hw_max_p_lrate": str(_GBIT_6),
        "hw_min_p_lrate": "8",
        "neg_log_lrate": str(phy.rate),
        "phy_cc": str(_changes(phy)),
        "pp_timeout": "7",
        "pr_max_p_lrate": str(_GBIT_6),
        "pr_min_p_lrate": "8",
        "routing_attr": str(int(phy.routing == "S")),
        "sas_addr": f"0x{address}",
    }
    yield f"phy_id={phy.number}\n"
    for name in sorted(values):
        yield f"  {name}={values[name]}\n"


_ALWAYS_ZERO = (
    "att_phy_id", "att_sata_host", "att_sata_ps", "att_stp_targ", "conn_p_link", "iz", "iz_pers", "phy_power_cond",
    "req_iz", "req_iz_cbe", "sas_pa_cap", "sas_pa_en", "sas_pow_cap", "sas_sl_cap", "sas_sl_en", "sata_pa_cap",
    "sata_pa_en", "sata_sl_cap", "sata_sl_en", "stp_buff_tsmall", "virt_phy", "zg", "zg_pers", "zoning_en",
)  # fmt: skip


def _changes(phy: _Phy) -> int:
    """A counter of eight bits, which a link that was never lost has at 1."""
    return 1 if phy.port is None else (1 + phy.port.phy_resets) % 256
