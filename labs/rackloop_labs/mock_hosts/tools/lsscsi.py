"""``lsscsi`` 0.31 on the SCSI devices and NVMe namespaces of a mock server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rackloop_labs.mock_hosts._kernel_log import scsi_names, sized
from rackloop_labs.mock_hosts._sysfs_drives import block_number, namespace_id
from rackloop_labs.mock_hosts._sysfs_ports import far_end
from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, AttachedExpander, HostActs, HostView
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_VERSION = "version: 0.31  2020/02/20 [svn: r160]\n"
_FLAGS = {
    spelled: long
    for short, long in {
        "b": "brief", "c": "classic", "C": "hosts", "d": "device", "g": "generic", "h": "help", "H": "hosts",
        "i": "scsi-id", "k": "kname", "l": "long", "L": "list", "D": "pdt", "N": "no-nvme", "p": "protection",
        "P": "protmode", "s": "size", "S": "sz-lbs", "t": "transport", "u": "unit", "U": "long-unit", "v": "verbose",
        "V": "version", "w": "wwn", "x": "lunhex",
    }.items()
    for spelled in (f"-{short}", f"--{'controllers' if short == 'C' else long.replace('-id', '_id')}")
}  # fmt: skip
_UNSUPPORTED = ("classic", "scsi-id", "list", "protection", "protmode", "wwn", "lunhex")
_HELP = """Usage: lsscsi   [--brief] [--controllers] [--device] [--generic] [--help]
		[--hosts] [--kname] [--long] [--long-unit] [--no-nvme] [--pdt]
		[--size] [--sz-lbs] [--transport] [--unit] [--verbose]
		[--version] [<h:c:t:l>]

List SCSI devices or hosts of a mock server, followed by NVMe namespaces or controllers.
"""
# Widths of the columns between the type and the node, for a SCSI device and for an NVMe namespace.
_TRANSPORT_WIDTH = 32
_UNIT_WIDTH = 34
_NVME_WIDTH = 43


@dataclass(frozen=True)
class _Line:
    """One device: its address, type, names, nodes and sizes."""

    address: tuple[str, ...]
    kind: int
    names: str
    transport: str
    unit: str
    node: str | None
    generic: str | None
    number: str | None
    size_bytes: int | None
    sector_bytes: int
    detail: str

    @property
    def is_nvme(self) -> bool:
        return self.address[0] == "N"


def lsscsi(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:  # noqa: ARG001 - it only looks
    """The SCSI devices with the enclosures of expanders, then the NVMe namespaces; see ``--help`` for the options."""
    try:
        options = Options.of(argv, flags=_FLAGS, valued={})
    except OptionError as error:
        return Answer(stderr=f"lsscsi: {error}\n{_HELP}", status=1)
    if "help" in options.flags or "version" in options.flags:
        return Answer(_HELP if "help" in options.flags else "", "" if "help" in options.flags else _VERSION)
    if missing := next((name for name in _UNSUPPORTED if name in options.flags), None):
        return Answer(stderr=f"lsscsi: --{missing} is not supported on a mock server\n", status=1)
    if "transport" in options.flags and "long" in options.flags:
        return Answer(stderr="please use '--list' (rather than '--long') with --transport\n", status=1)
    if len(options.operands) > 1:
        return Answer(stderr="unexpected additional arguments\n" + _HELP, status=1)
    try:
        fits = _filter(options.operands[0] if options.operands else "")
    except OptionError as error:
        return Answer(stderr=f"{error}\n", status=1)
    if "hosts" in options.flags:
        return Answer("".join(_hosts(view, options)))
    lines = [line for line in _lines(view) if fits(line.address)]
    if "no-nvme" in options.flags:
        lines = [line for line in lines if not line.is_nvme]
    return Answer("".join(_printed(line, options) for line in lines))


def _filter(text: str) -> Callable[[tuple[str, ...]], bool]:
    """By an ``h:c:t:l`` of which the last parts may be left out and any may be ``*`` or ``-``."""
    parts = text.removeprefix("[").removesuffix("]").split(":") if text else []
    for part in parts:
        if not (part.isdigit() or part in {"*", "-", "?", "N", ""}):
            raise OptionError(f"cannot decode {part} as an integer")
    wanted = ["*" if part in {"-", "?", ""} else part for part in parts]
    return lambda address: all(part in {"*", own} for part, own in zip(wanted, address, strict=False))


def _lines(view: HostView) -> Iterator[_Line]:
    scsi = [_drive(drive) for drive in view.drives if drive.protocol != "nvme"]
    scsi += [_enclosure(expander) for expander in view.expanders]
    yield from sorted(scsi, key=lambda line: [int(part) for part in line.address])
    nvme = [_namespace(drive) for drive in view.drives if drive.protocol == "nvme"]
    yield from sorted(nvme, key=lambda line: int(line.address[1]))


def _drive(drive: AttachedDrive) -> _Line:
    vendor, product = scsi_names(drive)
    address = drive.wwn or ""
    return _Line(
        address=tuple((drive.hctl or "").split(":")),
        kind=0,
        names=f"{vendor:<8.8} {product:<16.16} {drive.firmware:<4.4}  ",
        transport=f"sata:{address}" if drive.transport == "sata" else f"sas:0x{drive.sas_address}",
        unit=address or "none",
        node=drive.kernel_name,
        generic=drive.generic,
        number=block_number(drive),
        size_bytes=drive.size_bytes,
        sector_bytes=drive.sector_bytes,
        detail="state=running queue_depth=32 scsi_level=6 type=0 device_blocked=0 timeout=30",
    )


def _enclosure(expander: AttachedExpander) -> _Line:
    return _Line(
        address=tuple(expander.hctl.split(":")),
        kind=13,
        names=f"{'RACKLOOP':<8} {'EXPANDER':<16} {'1.0':<4}  ",
        transport=f"sas:0x{expander.sas_address}",
        unit="none",
        node=None,
        generic=expander.generic,
        number=None,
        size_bytes=None,
        sector_bytes=1,
        detail="state=running queue_depth=32 scsi_level=6 type=13 device_blocked=0 timeout=30",
    )


def _namespace(drive: AttachedDrive) -> _Line:
    return _Line(
        address=("N", str(drive.number), "0", "1"),
        kind=0,
        names=f"{drive.model}__1",
        transport="pcie 0x1b36:0x1000",
        unit=namespace_id(drive),
        node=drive.block_name,
        generic=None,
        number=block_number(drive),
        size_bytes=drive.size_bytes,
        sector_bytes=drive.sector_bytes,
        detail="capability=0  ext_range=256  hidden=0  nsid=1  range=0  removable=0",
    )


def _printed(line: _Line, options: Options) -> str:
    flags = options.flags
    address = f"[{':'.join(line.address)}]"
    text = f"{address:<13}"
    if "brief" not in flags:
        text += f"{f'{line.kind:#x}' if 'pdt' in flags else 'disk' if line.kind == 0 else 'enclosu':<8}"
        text += _middle(line, options)
    text += f"{f'/dev/{line.node}' if line.node else '-':<9}"
    if "device" in flags and line.number is not None:
        text += f" [{line.number}]" if line.is_nvme else f"[{line.number}]"
    if "generic" in flags:
        text += f"  {f'/dev/{line.generic}' if line.generic else '-':<9}"
        if "device" in flags and line.generic is not None:
            text += f"[21:{line.generic.removeprefix('sg')}]"
    if "size" in flags or "sz-lbs" in flags:
        text += f"  {_size(line, options)}"
    text += "\n"
    return f"{text}  {line.detail}\n" if "long" in flags else text


def _middle(line: _Line, options: Options) -> str:
    if "transport" in options.flags:
        return f"{line.transport:<{_NVME_WIDTH if line.is_nvme else _TRANSPORT_WIDTH}}"
    how_long = options.flags.count("unit") + 2 * options.flags.count("long-unit")
    if not how_long:
        return f"{line.names:<{_NVME_WIDTH}}" if line.is_nvme else line.names
    if line.is_nvme:
        return f"{line.unit if how_long > 3 else line.unit.removeprefix('eui.'):<{_NVME_WIDTH}}"
    unit = f"naa.{line.unit}" if how_long > 3 and line.unit != "none" else line.unit
    return f"{unit}  " if how_long > 1 and unit != "none" else f"{unit:<{_UNIT_WIDTH}}"


def _size(line: _Line, options: Options) -> str:
    how, blocks = options.flags.count("size"), options.flags.count("sz-lbs") or options.flags.count("size") > 2
    if line.size_bytes is None:
        return f"{'-':>6}"
    if blocks:
        number = f"{line.size_bytes // line.sector_bytes:>12}"
        return f"{number},{line.sector_bytes}" if options.flags.count("sz-lbs") > 1 else number
    return f"{sized(line.size_bytes, 1000 if how == 1 else 1024).replace(' ', ''):>6}"


def _hosts(view: HostView, options: Options) -> Iterator[str]:
    """The SCSI host of each port, and the NVMe controllers."""
    for port in view.ports:
        if not port.is_present:
            continue
        end = far_end(view, port)
        text = f"[{port.index}]    {'ahci' if end.protocol == 'sata' else 'mptsas':<12}  "
        if "transport" in options.flags:
            text += "sata:" if end.protocol == "sata" else f"sas:0x{end.address}"
        yield f"{text}\n"
    if "no-nvme" not in options.flags:
        for drive in sorted(view.drives, key=lambda drive: drive.number):
            start = f"[N:{drive.number}]  {f'/dev/{drive.kernel_name}':<9}"
            if drive.protocol == "nvme" and "transport" in options.flags:
                yield f"{start}    pcie 0x1b36:0x1000\n"
            elif drive.protocol == "nvme":
                yield f"{start}  {drive.model:<32}  {drive.serial:<18}  {drive.firmware:<8}\n"
