"""LWFS: a log-structured store on a drive whose metadata are elsewhere, guarded by capability tokens."""

from rackloop_models.lwfs._client import Locator, LwfsClient, LwfsFile
from rackloop_models.lwfs._metadata import Grant, MetadataService, NoRoom, NoSuchFile
from rackloop_models.lwfs._record import HEADER_BYTES, DriveKey, NoStore
from rackloop_models.lwfs._server import Address, NotHere, RecordDamaged, Recovered, StorageServer, Tail
from rackloop_models.lwfs._token import KEY_BYTES, Extent, Refusal, Rights, Token, TokenRefused

__all__ = [
    "HEADER_BYTES",
    "KEY_BYTES",
    "Address",
    "DriveKey",
    "Extent",
    "Grant",
    "Locator",
    "LwfsClient",
    "LwfsFile",
    "MetadataService",
    "NoRoom",
    "NoStore",
    "NoSuchFile",
    "NotHere",
    "RecordDamaged",
    "Recovered",
    "Refusal",
    "Rights",
    "StorageServer",
    "Tail",
    "Token",
    "TokenRefused",
]
