"""Two storage servers, two drives and a metadata service in memory, counting calls and I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from rackloop_models.lwfs import KEY_BYTES, CountedBlocks, LwfsClient, MetadataService, StorageServer
from tests.memory_blocks import MemoryBlocks

DRIVE_BLOCKS = 64
BLOCK = 4096


@dataclass
class SmallRack:
    """Drive d1 is attached to s1 and carries the file ``notes``; d2, formatted too, to nobody."""

    now_s: float = 1_000.0
    at: dict[str, str] = field(default_factory=lambda: {"d1": "s1"})
    first_key: int = 1

    def __post_init__(self) -> None:
        keys = count(self.first_key)
        self.metadata = MetadataService(lambda: bytes([next(keys)]) * KEY_BYTES, lasts_s=60)
        self.memory = {drive: MemoryBlocks(DRIVE_BLOCKS * BLOCK) for drive in ("d1", "d2")}
        self.drives = {drive: CountedBlocks(memory) for drive, memory in self.memory.items()}
        self.servers = {name: StorageServer(name, self.wall_s) for name in ("s1", "s2")}
        for drive, blocks in self.drives.items():
            self.metadata.format_drive("rack", drive, blocks)
        self.servers["s1"].attach("d1", self.drives["d1"])
        self.metadata.create("notes", "d1", 32)

    def format(self, drive: str) -> None:
        """Make a drive that is attached carry an empty store, with the file ``notes`` in it."""
        self.metadata.format_drive("rack", drive, self.drives[drive])
        self.servers[self.at[drive]].attach(drive, self.drives[drive])
        self.metadata.create("notes", drive, 32)

    def wall_s(self) -> float:
        return self.now_s

    def server_of(self, drive_id: str) -> str:
        return self.at[drive_id]

    def move(self, drive: str, server: str) -> None:
        """Take a drive from whoever has it to another server."""
        for name in self.servers:
            self.servers[name].detach(drive)
        self.servers[server].attach(drive, self.drives[drive])
        self.at[drive] = server

    def client(self, *, keeps_servers: bool = False, tries: int = 1) -> LwfsClient:
        return LwfsClient(self.metadata, self, self.servers, self.wall_s, keeps_servers=keeps_servers, tries=tries)
