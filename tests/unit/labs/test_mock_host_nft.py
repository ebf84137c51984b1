"""nft of a mock server, held against what nftables 1.0.6 printed for the same commands."""

from __future__ import annotations

import pytest

from rackloop_labs.mock_hosts._packet_filter import PacketFilter

TABLE = "inet rackloop_partition"
BEGIN = f"""add table {TABLE}
add chain {TABLE} input {{ type filter hook input priority -300; policy drop; }}
add chain {TABLE} output {{ type filter hook output priority -300; policy drop; }}
add rule {TABLE} input iif lo accept
add rule {TABLE} input ip saddr 10.1.1.1 tcp dport 22 accept
add rule {TABLE} output oif lo accept
"""
LISTED = """table inet rackloop_partition {
\tchain input {
\t\ttype filter hook input priority raw; policy drop;
\t\tiif "lo" accept
\t\tip saddr 10.1.1.1 tcp dport 22 accept
\t}

\tchain output {
\t\ttype filter hook output priority raw; policy drop;
\t\toif "lo" accept
\t}
}
"""


def test_a_table_is_kept_listed_deleted_and_gone_with_a_boot() -> None:
    nft = PacketFilter()
    assert nft.nft([BEGIN]).status == 0
    assert nft.nft(["list", "tables"]).stdout == f"table {TABLE}\n"
    assert nft.nft(["list", "table", *TABLE.split()]).stdout == LISTED
    assert nft.nft(["delete", "table", *TABLE.split()]).status == 0
    assert nft.nft(["list", "tables"]).stdout == ""
    assert nft.nft([BEGIN]).status == 0
    nft.forget()
    assert nft.nft(["list", "tables"]).stdout == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"delete table {TABLE}", "No such file or directory"),
        (f"list table {TABLE}", "No such file or directory"),
        (f"add rule {TABLE} input accept", "syntax error"),
        (f"add table {TABLE}\nadd rule {TABLE} nowhere iif lo accept", "No such file or directory"),
        ("flush ruleset", "syntax error"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_of_it_is_done(command: str, said: str) -> None:
    nft = PacketFilter()
    answer = nft.nft([command])
    assert (answer.status, answer.stdout) == (1, "")
    assert said in answer.stderr
    assert nft.nft(["list", "tables"]).stdout == ""
