"""``lsblk`` of util-linux 2.38 on the drives of a mock server, which have no partitions and no file systems."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rackloop_labs.mock_hosts._sysfs_drives import block_number
from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, HostActs, HostView
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._lsblk_columns import COLUMNS, Value
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_VERSION = "lsblk from util-linux 2.38.1\n"
_HELP = """
Usage:
 lsblk [options] [<device> ...]

List information about the block devices of a mock server.

Options:
 -D, --discard        print discard capabilities
 -I, --include <list> show only devices with specified major numbers
 -J, --json           use JSON output format
 -O, --output-all     output all columns
 -P, --pairs          use key="value" output format
 -S, --scsi           output info about SCSI devices
 -a, --all            print all devices
 -b, --bytes          print SIZE in bytes rather than in human readable format
 -d, --nodeps         don't print slaves or holders
 -e, --exclude <list> exclude devices by major number
 -f, --fs             output info about filesystems
 -i, --ascii          use ascii characters only
 -l, --list           use list format output
 -m, --perms          output info about permissions
 -n, --noheadings     don't print headings
 -o, --output <list>  output columns
 -p, --paths          print complete device path
 -r, --raw            use raw output format
 -t, --topology       output info about topology
 -x, --sort <column>  sort output by <column>
 -z, --zoned          print zone related information

 -h, --help           display this help
 -V, --version        display version
"""
_TRY = "Try 'lsblk --help' for more information."
_FLAGS = {
    spelled: long
    for short, long in {
        "A": "noempty", "D": "discard", "J": "json", "M": "merge", "O": "output-all", "P": "pairs", "S": "scsi",
        "a": "all", "b": "bytes", "d": "nodeps", "f": "fs", "h": "help", "V": "version", "i": "ascii", "l": "list",
        "m": "perms", "n": "noheadings", "p": "paths", "r": "raw", "s": "inverse", "t": "topology", "y": "shell",
        "z": "zoned",
    }.items()
    for spelled in (f"-{short}", f"--{long}")
}  # fmt: skip
_VALUED = {
    spelled: long
    for short, long in {
        "E": "dedup", "I": "include", "e": "exclude", "o": "output", "w": "width", "x": "sort",
    }.items()
    for spelled in (f"-{short}", f"--{long}")
}  # fmt: skip
_UNSUPPORTED = ("merge", "inverse", "shell", "dedup", "width")
_DEFAULT = ("NAME", "MAJ:MIN", "RM", "SIZE", "RO", "TYPE", "MOUNTPOINTS")
_SETS = {
    "output-all": tuple(COLUMNS),
    "discard": ("NAME", "DISC-ALN", "DISC-GRAN", "DISC-MAX", "DISC-ZERO"),
    "zoned": (
        "NAME", "ZONED", "ZONE-SZ", "ZONE-NR", "ZONE-AMAX", "ZONE-OMAX", "ZONE-APP", "ZONE-WGRAN",
    ),
    "fs": ("NAME", "FSTYPE", "FSVER", "LABEL", "UUID", "FSAVAIL", "FSUSE%", "MOUNTPOINTS"),
    "perms": ("NAME", "SIZE", "OWNER", "GROUP", "MODE"),
    "scsi": ("NAME", "HCTL", "TYPE", "VENDOR", "MODEL", "REV", "SERIAL", "TRAN"),
    "topology": (
        "NAME", "ALIGNMENT", "MIN-IO", "OPT-IO", "PHY-SEC", "LOG-SEC", "ROTA", "SCHED", "RQ-SIZE", "RA", "WSAME",
    ),
}  # fmt: skip
_NONE_FOUND = 32
_SOME_FOUND = 64


def lsblk(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:  # noqa: ARG001 - it only looks
    """The block devices, in every format and with every column; see ``--help`` for the options.

    Exits 32 where none of the devices asked for is there, 64 where some are not.
    """
    try:
        options = Options.of(argv, flags=_FLAGS, valued=_VALUED)
    except OptionError as error:
        return Answer(stderr=f"lsblk: {error}\n{_TRY}\n", status=1)
    if "help" in options.flags or "version" in options.flags:
        return Answer(_HELP if "help" in options.flags else _VERSION)
    given = {*options.flags, *(meaning for meaning, _ in options.values)}
    try:
        if missing := next((name for name in _UNSUPPORTED if name in given), None):
            return Answer(stderr=f"lsblk: --{missing} is not supported on a mock server\n", status=1)
        columns = _columns(options)
        drives = _chosen(options, view)
    except OptionError as error:
        return Answer(stderr=f"lsblk: {error}\n", status=1)
    status, stderr = 0, ""
    if options.operands:
        nodes = {name: device_node(view, name) for name in options.operands}
        known = {f"/dev/{drive.block_name}" for drive in view.drives}
        lost = [name for name, node in nodes.items() if node not in known]
        drives = [drive for drive in drives if f"/dev/{drive.block_name}" in nodes.values()]
        stderr = "".join(f"lsblk: {name}: not a block device\n" for name in lost)
        status = _NONE_FOUND if len(lost) == len(nodes) else _SOME_FOUND if lost else 0
    rows = [[_cell(name, drive, options) for name in columns] for drive in drives]
    return Answer(_printed(columns, rows, options), stderr, status)


def _columns(options: Options) -> list[str]:
    columns = list(_DEFAULT)
    for flag in options.flags:
        columns = list(_SETS.get(flag, columns))
    if (wanted := options.value("output")) is not None:
        names = [name.strip().upper() for name in wanted.removeprefix("+").split(",")]
        for name in names:
            if name not in COLUMNS:
                raise OptionError(f"unknown column: {name}")
        columns = [*columns, *names] if wanted.startswith("+") else names
    return columns


def _chosen(options: Options, view: HostView) -> list[AttachedDrive]:
    """The drives, as lsblk orders and filters them."""
    drives = sorted(view.drives, key=_numbers)
    if "scsi" in options.flags:
        drives = [drive for drive in drives if drive.hctl is not None]
    if (included := options.value("include")) is not None:
        drives = [drive for drive in drives if _numbers(drive)[0] in _majors(included)]
    if (excluded := options.value("exclude")) is not None:
        drives = [drive for drive in drives if _numbers(drive)[0] not in _majors(excluded)]
    if (sort := options.value("sort")) is not None:
        column = COLUMNS.get(sort.upper())
        if column is None:
            raise OptionError(f"unknown column: {sort}")
        drives = sorted(drives, key=lambda drive: _sort_key(column.value(drive)))
    return drives


def _sort_key(value: Value) -> tuple[float, str]:
    return (value, "") if isinstance(value, int) else (0, str(value or ""))


def _numbers(drive: AttachedDrive) -> tuple[int, int]:
    major, _, minor = block_number(drive).partition(":")
    return int(major), int(minor)


def _majors(text: str) -> set[int]:
    try:
        return {int(part) for part in text.split(",")}
    except ValueError:
        raise OptionError(f"failed to parse list '{text}'") from None


def _cell(name: str, drive: AttachedDrive, options: Options) -> Value:
    column = COLUMNS[name]
    value = column.value(drive)
    if name in {"NAME", "KNAME"} and "paths" in options.flags:
        return f"/dev/{value}"
    if column.is_size and isinstance(value, int) and "bytes" not in options.flags:
        return _sized(value)
    return value


def _sized(size: int) -> str:
    """In the largest binary unit that leaves a whole one, to a tenth."""
    power = min((size.bit_length() - 1) // 10, 6) if size else 0
    whole, rest = divmod(size, 1 << 10 * power)
    tenths = ((rest * 1000 >> 10 * power) + 50) // 100
    whole, tenths = (whole + 1, 0) if tenths == 10 else (whole, tenths)
    return f"{whole}{f'.{tenths}' if tenths else ''}{'BKMGTPE'[power]}"


def _printed(columns: Sequence[str], rows: Sequence[Sequence[Value]], options: Options) -> str:
    if "json" in options.flags:
        return _json(columns, rows)
    texts = [[_text(value) for value in row] for row in rows]
    if "pairs" in options.flags:
        return "".join(
            " ".join(f'{name}="{text}"' for name, text in zip(columns, row, strict=True)) + "\n" for row in texts
        )
    heading = [] if "noheadings" in options.flags else [list(columns)]
    if "raw" in options.flags:
        return "".join(" ".join(text.replace(" ", "\\x20") for text in row) + "\n" for row in [*heading, *texts])
    if "MAJ:MIN" in columns:
        at = columns.index("MAJ:MIN")
        for row in texts:
            row[at] = "{:>3}:{:<3}".format(*row[at].split(":"))
    lines = [*heading, *texts] if texts else []
    widths = [_width(name, [row[at] for row in texts]) for at, name in enumerate(columns)]
    last = len(columns) - 1
    return "".join(
        " ".join(
            text if at == last and not COLUMNS[name].is_right else _padded(text, widths[at], name)
            for at, (name, text) in enumerate(zip(columns, row, strict=True))
        )
        + "\n"
        for row in lines
    )


def _width(column: str, texts: Sequence[str]) -> int:
    widest = max(map(len, texts), default=0)
    return max(widest, COLUMNS[column].at_least) if widest > len(column) else len(column)


def _padded(text: str, width: int, column: str) -> str:
    return text.rjust(width) if COLUMNS[column].is_right else text.ljust(width)


def _text(value: Value) -> str:
    if value is None or isinstance(value, list):
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _json(columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    """As libsmartcols lays it out."""
    blocks = []
    for row in rows:
        fields = [f'         "{name.lower()}": {_json_value(value)}' for name, value in zip(columns, row, strict=True)]
        blocks.append("{\n" + ",\n".join(fields) + "\n      }")
    return '{\n   "blockdevices": [\n' + ("      " if blocks else "") + ",".join(blocks) + "\n   ]\n}\n"


def _json_value(value: Value) -> str:
    return "[\n             null\n         ]" if isinstance(value, list) else json.dumps(value)
