"""LWFS: a log-structured store on a drive whose metadata are elsewhere, guarded by capability tokens."""

from rackloop_models.lwfs._blocks import BLOCK_BYTES, Blocks, CountedBlocks, FileBlocks, MemoryBlocks, Part
from rackloop_models.lwfs._client import Locator, LwfsClient, LwfsFile
from rackloop_models.lwfs._metadata import Grant, MetadataService, NoRoom, NoSuchFile
from rackloop_models.lwfs._record import HEADER_BYTES, DriveKey, NoStore
from rackloop_models.lwfs._server import Address, NotHere, RecordDamaged, Recovered, StorageServer, Tail
from rackloop_models.lwfs._token import KEY_BYTES, Extent, Refusal, Rights, Token, TokenRefused

__all__ = [
    "BLOCK_BYTES",
    "HEADER_BYTES",
    "KEY_BYTES",
    "Address",
    "Blocks",
    "CountedBlocks",
    "DriveKey",
    "Extent",
    "FileBlocks",
    "Grant",
    "Locator",
    "LwfsClient",
    "LwfsFile",
    "MemoryBlocks",
    "MetadataService",
    "NoRoom",
    "NoStore",
    "NoSuchFile",
    "NotHere",
    "Part",
    "RecordDamaged",
    "Recovered",
    "Refusal",
    "Rights",
    "StorageServer",
    "Tail",
    "Token",
    "TokenRefused",
]
