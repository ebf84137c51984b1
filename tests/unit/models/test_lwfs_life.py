"""A file's life by any order of appends, reads, moves, new keys, ended tokens and lost writers."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop_models.lwfs import Address
from tests.unit.models.lwfs_rack import SmallRack

MOST_RECORDS = 32
LASTS_S = 60


class LifeOfAFile(RuleBasedStateMachine):
    """Every record of one block that was acknowledged is there, whatever happened to drive, key and clients."""

    def __init__(self) -> None:
        super().__init__()
        self.rack = SmallRack()
        self.client = self.rack.client(keeps_servers=True, tries=2)
        self.file = self.client.open("notes")
        self.records: list[tuple[Address, bytes]] = []

    @precondition(lambda self: len(self.records) < MOST_RECORDS)
    @rule(payload=st.binary(max_size=200), flush=st.booleans())
    def append(self, payload: bytes, flush: bool) -> None:
        self.records.append((self.file.append(payload, flush=flush), payload))

    @rule(keeps_servers=st.booleans())
    def open_again(self, keeps_servers: bool) -> None:
        """Another client goes on, which looked for nothing."""
        self.client = self.rack.client(keeps_servers=keeps_servers, tries=2)
        self.file = self.client.open("notes")

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        address, payload = data.draw(st.sampled_from(self.records))
        reads = self.rack.drives["d1"].reads
        assert self.file.read(address) == payload
        assert self.rack.drives["d1"].reads == reads + 1

    @rule(server=st.sampled_from(["s1", "s2"]))
    def move(self, server: str) -> None:
        ios, calls = self.rack.drives["d1"].ios, self.rack.metadata.calls
        self.rack.move("d1", server)
        assert (self.rack.drives["d1"].ios, self.rack.metadata.calls) == (ios + 1, calls)

    @rule()
    def give_another_key(self) -> None:
        self.rack.metadata.revoke("d1", self.rack.servers[self.rack.at["d1"]])
        self.client.forget("notes")

    @rule()
    def let_tokens_end(self) -> None:
        self.rack.now_s += LASTS_S

    @rule(torn=st.binary(min_size=1, max_size=BLOCK_BYTES))
    def lose_the_writer(self, torn: bytes) -> None:
        """A writer is lost in the middle of an append, and another goes on."""
        tail = 1 + len(self.records)
        if tail <= MOST_RECORDS:
            content = self.rack.memory["d1"].content
            content[tail * BLOCK_BYTES : tail * BLOCK_BYTES + len(torn)] = torn
        self.client = self.rack.client(keeps_servers=True, tries=2)
        self.file = self.client.open("notes")
        assert self.file.recover().records == tuple(address for address, _ in self.records)

    @invariant()
    def only_one_server_has_the_drive(self) -> None:
        having = [name for name, server in self.rack.servers.items() if "d1" in server.drives]
        assert having == [self.rack.at["d1"]]


LifeOfAFile.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestLifeOfAFile = LifeOfAFile.TestCase
