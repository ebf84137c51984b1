"""``sg_ses`` 2.48 on the enclosures that expanders of a mock server have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rackloop_labs.mock_hosts._kernel_log import scsi_names
from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, AttachedExpander, HostActs, HostView
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._options import OptionError, Options
from rackloop_labs.mock_hosts.tools._ses_pages import Enclosure

_VERSION = "version: 2.48 20200501\n"
_HELP = """Usage: sg_ses [--all] [--dev-slot-num=SN] [--filter] [--get=STR] [--help]
              [--index=IIA] [--join] [--page=PG] [--quiet] [--readonly]
              [--status] [--version] DEVICE

       sg_ses [--clear=STR] [--dev-slot-num=SN] [--index=IIA] [--set=STR]
              DEVICE

Fetch pages and fields of the enclosure at an expander of a mock server, or switch a slot off and on with
--set=devoff and --clear=devoff. Pages: sdp, cf, es, ed, aes, all.
"""
_FLAGS = {
    "-a": "all", "--all": "all", "-f": "filter", "--filter": "filter", "-h": "help", "--help": "help",
    "-j": "join", "--join": "join", "-q": "quiet", "--quiet": "quiet", "-R": "readonly", "--readonly": "readonly",
    "-s": "status", "--status": "status", "-V": "version", "--version": "version",
}  # fmt: skip
_VALUED = {
    "-C": "clear", "--clear": "clear", "-G": "get", "--get": "get", "-S": "set", "--set": "set", "-p": "page",
    "--page": "page", "-I": "index", "--index": "index", "-x": "slot", "--dsn": "slot", "--dev-slot-num": "slot",
}  # fmt: skip
_PAGES = {
    "sdp": 0, "cf": 1, "ec": 2, "es": 2, "ed": 7, "aes": 0xA, "all": 0xFF,
}  # fmt: skip
# Acronyms of an array device slot element: first byte, first bit, number of bits.
_ACRONYMS = {
    "active": (2, 7, 1), "bypa": (3, 3, 1), "bypb": (3, 2, 1), "conscheck": (1, 4, 1), "devoff": (3, 4, 1),
    "disable": (0, 5, 1), "dnr": (2, 6, 1), "fault": (3, 5, 1), "hotspare": (1, 5, 1), "ident": (2, 1, 1),
    "incritarray": (1, 3, 1), "infailedarray": (1, 2, 1), "insert": (2, 3, 1), "locate": (2, 1, 1),
    "missing": (2, 4, 1), "ok": (1, 7, 1), "prdfail": (0, 6, 1), "rebuildremap": (1, 1, 1), "remove": (2, 2, 1),
    "rrabort": (1, 0, 1), "rsvddevice": (1, 6, 1), "swap": (0, 4, 1),
}  # fmt: skip
_SYNTAX = "sg_ses failed: Syntax error\nAdd '-h' to command line for usage information\n"
_SYNTAX_STATUS = 1
_CONTRADICT_STATUS = 31
_NO_DEVICE_STATUS = 52
_UNSUPPORTED_STATUS = 9
_OTHER_STATUS = 99
_OTHER = "Some error occurred, try again with '-v' or '-vv' for more information\n"


class _Refused(Exception):
    """The message of sg_ses on standard error, and its exit status."""

    def __init__(self, text: str, status: int) -> None:
        self.text = text
        self.status = status
        super().__init__(text)


def sg_ses(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """The pages of an enclosure, its fields, and the power of its slots; see ``--help`` for the options.

    ``--set=devoff`` and ``--clear=devoff`` switch the drive of a slot; nothing else can be set.
    """
    try:
        return _run(argv, view, acts)
    except OptionError as error:
        return Answer(stderr=f"sg_ses: {error}\n\n{_HELP}{_SYNTAX}", status=_SYNTAX_STATUS)
    except _Refused as refused:
        return Answer(stderr=refused.text, status=refused.status)


def _run(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    options = Options.of(argv, flags=_FLAGS, valued=_VALUED)
    if "help" in options.flags:
        return Answer(_HELP)
    if "version" in options.flags:
        return Answer(stderr=_VERSION)
    page = _page(options)
    if not options.operands:
        raise _Refused(f"missing DEVICE name!\n\n{_SYNTAX}", _SYNTAX_STATUS)
    changes = [(meaning, value) for meaning, value in options.values if meaning in {"clear", "get", "set"}]
    index = _number(options, "index")
    slot = _number(options, "slot")
    if changes and index is None and slot is None:
        needs = (
            "with --clear, --get or --set option need either\n   --index, --descriptor, --dev-slot-num or --sas-addr\n"
        )
        raise _Refused(f"{needs}sg_ses failed: Contradict\n", _CONTRADICT_STATUS)
    expander, drive = _device(options.operands[0], view)
    if expander is None:
        return _not_an_enclosure(drive)
    enclosure = Enclosure(
        expander,
        {known.slot: known for known in view.drives if known.expander == expander and known.slot is not None},
        is_filtered="filter" in options.flags,
    )
    is_joined = bool({"join", "all"} & set(options.flags)) or page == _PAGES["all"]
    for number, by_slot in ((slot, True), (index, False)):
        if number is not None and number >= expander.slots and (changes or is_joined or not by_slot):
            what = f"device slot number: {number} not found\n" if by_slot else f"element index {number} not found\n"
            raise _Refused(what + _OTHER, _OTHER_STATUS)
    if changes:
        return _change(enclosure, slot if slot is not None else index or 0, changes, acts)
    chosen = slot if slot is not None else index
    header = f"  {'RACKLOOP':<8}  {'EXPANDER':<16}  {'1.0':<4}\n" if "quiet" not in options.flags else ""
    if is_joined:
        return Answer(header + _text(enclosure.joined(chosen)))
    pages: dict[int, Callable[[], Iterable[str]]] = {
        _PAGES["sdp"]: enclosure.supported,
        _PAGES["cf"]: enclosure.configuration,
        _PAGES["es"]: lambda: enclosure.status(index),
        _PAGES["ed"]: enclosure.descriptors,
        _PAGES["aes"]: enclosure.additional,
    }
    if page not in pages:
        return Answer(header, "sg_ses failed: Illegal request, Invalid field in cdb\n", 5)
    return Answer(header + _text(pages[page]()))


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _page(options: Options) -> int:
    wanted = options.value("page")
    if wanted is None:
        return _PAGES["sdp"]
    if wanted in _PAGES:
        return _PAGES[wanted]
    try:
        return int(wanted.removesuffix("h"), 16 if wanted.endswith("h") else 0)
    except ValueError:
        names = _text(f"    [{name}] [{code:#x}]" for name, code in _PAGES.items())
        raise _Refused(
            f"'--page=PG' argument abbreviation \"{wanted}\" not found\nHere are the choices:\n{names}{_SYNTAX}",
            _SYNTAX_STATUS,
        ) from None


def _number(options: Options, meaning: str) -> int | None:
    """The element that ``--index`` or ``--dev-slot-num`` names; an index may name its type before a comma."""
    text = options.value(meaning)
    if text is None:
        return None
    try:
        number = int(text.rpartition(",")[2] if meaning == "index" else text, 0)
    except ValueError:
        number = -1
    if number < 0:
        option = {"index": "--index=", "slot": "--dev-slot-num="}[meaning]
        raise _Refused(f"bad argument to '{option}', expect 0 to 254\n{_SYNTAX}", _SYNTAX_STATUS)
    return number


def _device(path: str, view: HostView) -> tuple[AttachedExpander | None, AttachedDrive | None]:
    name = device_node(view, path)
    for expander in view.expanders:
        if name in {f"/dev/{expander.generic}", f"/dev/bsg/{expander.hctl}"}:
            return expander, None
    for drive in view.drives:
        if name in {f"/dev/{drive.kernel_name}", f"/dev/{drive.generic}", f"/dev/bsg/{drive.hctl}"}:
            return None, drive
    raise _Refused("sg_ses failed: No such file or directory\n", _NO_DEVICE_STATUS)


def _not_an_enclosure(drive: AttachedDrive | None) -> Answer:
    assert drive is not None  # noqa: S101 - a device that is no expander is a drive
    vendor, product = scsi_names(drive)
    header = f"  {vendor:<8.8}  {product:<16.16}  {drive.firmware:<4.4}\n    disk device (not an enclosure)\n"
    return Answer(header, "sg_ses failed: Illegal request, Invalid opcode\n", _UNSUPPORTED_STATUS)


def _change(enclosure: Enclosure, slot: int, changes: Sequence[tuple[str, str]], acts: HostActs) -> Answer:
    shown = []
    for meaning, text in changes:
        name, _, value = text.partition("=")
        byte, bit, bits = _field(name)
        if meaning == "get":
            number = int.from_bytes(enclosure.element(slot), "big") >> (8 * (3 - byte) + bit - bits + 1)
            shown.append(str(number & ((1 << bits) - 1)))
        elif (byte, bit, bits) != _ACRONYMS["devoff"]:
            raise _Refused(f"the enclosure of a mock server has no {name} to set, only devoff\n{_OTHER}", _OTHER_STATUS)
        else:
            is_off = value != "0" if meaning == "set" else value == "1"
            acts.power_slot(enclosure.expander, slot, on=not is_off)
    return Answer(_text(shown))


def _field(name: str) -> tuple[int, int, int]:
    """An acronym, or ``BYTE:BIT`` with a number of bits behind it."""
    if name in _ACRONYMS:
        return _ACRONYMS[name]
    if not name[:1].isdigit():
        raise _Refused(f"acroynm {name} not found (try '-ee' option)\n{_OTHER}", _OTHER_STATUS)
    try:
        byte, bit, *rest = (int(part) for part in name.split(":"))
    except ValueError:
        byte, bit, rest = 0, 8, []
    bits = rest[0] if rest else 1
    if not 0 <= bit <= 7:
        refusal = f"<start_bit> needs to be between 0 and 7\nunable to decode STR argument to: {byte}\n{_SYNTAX}"
        raise _Refused(refusal, _SYNTAX_STATUS)
    if not (0 <= byte <= 3 and 1 <= bits <= 8 * (3 - byte) + bit + 1):
        raise _Refused(f"unable to decode STR argument to: {byte}\n{_SYNTAX}", _SYNTAX_STATUS)
    return byte, bit, bits
