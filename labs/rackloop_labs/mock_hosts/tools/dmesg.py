"""``dmesg`` of util-linux 2.38 on the kernel log of a mock server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from rackloop_labs.mock_hosts._view import Answer, HostActs, HostView, KernelLine
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_VERSION = "dmesg from util-linux 2.38.1\n"

_LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
_TRY = "Try 'dmesg --help' for more information."
_TIME_FORMATS = ("delta", "reltime", "ctime", "notime", "iso")
_FLAGS = {
    "-T": "ctime", "--ctime": "ctime", "-t": "notime", "--notime": "notime",
    "-x": "decode", "--decode": "decode", "-r": "raw", "--raw": "raw", "-J": "json", "--json": "json",
    "-k": "kernel", "--kernel": "kernel", "-P": "plain", "--nopager": "plain", "-S": "plain", "--syslog": "plain",
    "-p": "plain", "--force-prefix": "plain", "--noescape": "plain",
    "-w": "follow", "--follow": "follow", "-W": "follow", "--follow-new": "follow",
    "-C": "clear", "--clear": "clear", "-c": "clear", "--read-clear": "clear",
    "-V": "version", "--version": "version", "-h": "help", "--help": "help",
}  # fmt: skip
_VALUED = {"-l": "level", "--level": "level", "--time-format": "format"}
_HELP = """
Usage:
 dmesg [options]

Display the kernel ring buffer of a mock server.

Options:
 -J, --json                  use JSON output format
 -k, --kernel                display kernel messages
 -l, --level <list>          restrict output to defined levels
 -r, --raw                   print the raw message buffer
 -x, --decode                decode facility and level to readable string
 -T, --ctime                 show human-readable timestamp
 -t, --notime                don't show any timestamp with messages
     --time-format <format>  show timestamp using the given format: [ctime|notime|iso]

 -h, --help                  display this help
 -V, --version               display version
"""


def dmesg(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:  # noqa: ARG001 - it only looks
    """The kernel log since the boot: ``-T``, ``-t``, ``--time-format``, ``-J``, ``-l``, ``-x`` and ``-r``.

    A log is neither followed nor cleared: asked for that, it says so and exits 1.
    """
    try:
        options = Options.of([word for word in argv if not _is_color(word)], flags=_FLAGS, valued=_VALUED)
    except OptionError as error:
        return Answer(stderr=f"dmesg: {error}\n{_TRY}\n", status=1)
    if options.operands:
        return Answer(stderr=f"dmesg: bad usage\n{_TRY}\n", status=1)
    try:
        levels, style = _levels(options.value("level")), _style(options)
    except OptionError as error:
        return Answer(stderr=f"dmesg: {error}\n", status=1)
    if "help" in options.flags or "version" in options.flags:
        return Answer(_HELP if "help" in options.flags else _VERSION)
    if "follow" in options.flags:
        return Answer(stderr="dmesg: following is not supported by the kernel log of a mock server\n", status=1)
    if "clear" in options.flags:
        return Answer(stderr="dmesg: clear kernel buffer failed: Operation not permitted\n", status=1)
    lines = [line for line in view.kernel_log if line.priority in levels]
    if "json" in options.flags:
        return Answer(_json(lines))
    return Answer("".join(_rendered(line, view, style, options) + "\n" for line in lines))


def _is_color(word: str) -> bool:
    """A request for colours, which a mock server has none of; its argument is optional, which getopt cannot read."""
    return word.startswith(("-L", "--color"))


def _levels(wanted: str | None) -> frozenset[int]:
    if wanted is None:
        return frozenset(range(len(_LEVELS)))
    for name in wanted.split(","):
        if name not in _LEVELS:
            raise OptionError(f"unknown level '{name}'")
    return frozenset(_LEVELS.index(name) for name in wanted.split(","))


def _style(options: Options) -> str:
    style = options.value("format")
    if style is not None and style not in _TIME_FORMATS:
        raise OptionError(f"unknown time format: {style}")
    if style in {"delta", "reltime"}:
        raise OptionError(f"the time format {style} is not supported by the kernel log of a mock server")
    return style or next((flag for flag in ("ctime", "notime") if flag in options.flags), "boot")


def _rendered(line: KernelLine, view: HostView, style: str, options: Options) -> str:
    if "raw" in options.flags:
        return f"<{line.priority}>{line}"
    facility = f"kern  :{_LEVELS[line.priority]:<6}: " if "decode" in options.flags else ""
    happened = view.booted_at + timedelta(microseconds=line.at_us)
    match style:
        case "ctime":
            return f"{facility}[{happened:%a %b} {happened.day:2} {happened:%H:%M:%S %Y}] {line.text}"
        case "iso":
            stamp = f"{happened:%Y-%m-%dT%H:%M:%S},{happened.microsecond:06}+00:00"
            return f"{facility}{stamp} {line.text}"
        case "notime":
            return facility + line.text
        case _:
            return f"{facility}{line}"


def _json(lines: Sequence[KernelLine]) -> str:
    """util-linux pads times to align them, which no JSON writer does."""
    entries = [
        f'{{\n         "pri": {line.priority},\n         "time": {line.at_us // 1_000_000:5}.'
        f'{line.at_us % 1_000_000:06},\n         "msg": {json.dumps(line.text)}\n      }}'
        for line in lines
    ]
    return '{\n   "dmesg": [\n      ' + ",".join(entries) + "\n   ]\n}\n"
