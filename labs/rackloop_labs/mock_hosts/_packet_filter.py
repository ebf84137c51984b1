"""``nft`` of a mock server, as nftables 1.0 reads and prints the tables, base chains and rules that it is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rackloop_labs.mock_hosts._view import Answer

NFT = "nft"
_VERSION = "nftables v1.0.6 (Lester Gooch #5)\n"
_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_TABLE = rf"(?P<family>ip|ip6|inet) (?P<table>{_NAME})"
_BASE = (
    r"\{ type filter hook (?P<hook>input|output|forward) priority (?P<priority>-?\d+); "
    r"policy (?P<policy>accept|drop); \}"
)
_COMMANDS = {
    what: re.compile(pattern)
    for what, pattern in (
        ("add table", rf"add table {_TABLE}"),
        ("add chain", rf"add chain {_TABLE} (?P<chain>{_NAME}) {_BASE}"),
        ("add rule", rf"add rule {_TABLE} (?P<chain>{_NAME}) (?P<rule>.+ (?:accept|drop))"),
        ("delete table", rf"delete table {_TABLE}"),
        ("list tables", r"list tables"),
        ("list table", rf"list table {_TABLE}"),
    )
}
# As nft prints them: a name that stands for a number, and an interface in quotes.
_PRIORITIES = {"-300": "raw", "-150": "mangle", "0": "filter"}
_INTERFACE = re.compile(r"\b(iif|oif) ([a-z0-9]+)")


@dataclass
class _Chain:
    head: str
    rules: list[str] = field(default_factory=list)


class PacketFilter:
    """The tables of one server; a boot begins without any.

    They are kept and told, and drop nothing: the one thing on the network that reaches a mock server is SSH.
    """

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, _Chain]] = {}

    def forget(self) -> None:
        """Have no table any more."""
        self._tables.clear()

    def nft(self, argv: Sequence[str]) -> Answer:
        """The answer to ``nft``, whose arguments are commands, a line each: all of them are obeyed, or none."""
        if list(argv) in (["--version"], ["-v"]):
            return Answer(_VERSION)
        before = {
            name: {chain: _Chain(of.head, [*of.rules]) for chain, of in its.items()}
            for name, its in self._tables.items()
        }
        said = ""
        for line in filter(None, map(str.strip, " ".join(argv).split("\n"))):
            told = self._obey(line)
            if told is None:
                self._tables = before
                return Answer(stderr=self._refusal(line), status=1)
            said += told
        return Answer(said)

    def _obey(self, line: str) -> str | None:
        """The output of a command; None where it is refused."""
        what, found = next(
            ((what, found) for what, known in _COMMANDS.items() if (found := known.fullmatch(line))), ("", None)
        )
        if found is None:
            return None
        if what == "list tables":
            return "".join(f"table {name}\n" for name in self._tables)
        name = f"{found['family']} {found['table']}"
        if what == "add table":
            self._tables.setdefault(name, {})
            return ""
        if name not in self._tables:
            return None
        chains = self._tables[name]
        if what == "delete table":
            del self._tables[name]
        elif what == "list table":
            return _listed(name, chains)
        elif what == "add chain":
            priority = _PRIORITIES.get(found["priority"], found["priority"])
            chains.setdefault(
                found["chain"],
                _Chain(f"type filter hook {found['hook']} priority {priority}; policy {found['policy']};"),
            )
        elif found["chain"] not in chains:
            return None
        else:
            chains[found["chain"]].rules.append(_INTERFACE.sub(r'\1 "\2"', found["rule"]))
        return ""

    def _refusal(self, line: str) -> str:
        found = re.match(rf"(?:add \w+|delete table|list table) {_TABLE}", line)
        is_known = found is not None and any(known.fullmatch(line) for known in _COMMANDS.values())
        why = "No such file or directory" if is_known else "syntax error, unexpected string"
        return f"Error: {why}\n{line}\n{'^' * len(line)}\n"


def _listed(name: str, chains: dict[str, _Chain]) -> str:
    parts = []
    for chain, its in chains.items():
        lines = "".join(f"\t\t{rule}\n" for rule in its.rules)
        parts.append(f"\tchain {chain} {{\n\t\t{its.head}\n{lines}\t}}\n")
    return f"table {name} {{\n" + "\n".join(parts) + "}\n"
