"""Local erasure coding: a store on one drive that decodes what cannot be read at once, and waits for no retries."""

from rackloop_models.local_erasure._errors import (
    FileExists,
    FolderNotEmpty,
    GroupUnrecoverable,
    NameTooLong,
    NoRoom,
    NoStore,
    NoSuchFile,
    ReplicasDisagree,
    StoreInUse,
    UnknownSuperblock,
)
from rackloop_models.local_erasure._file_table import require_name
from rackloop_models.local_erasure._group_reads import ReadMode
from rackloop_models.local_erasure._layout import SECTOR_BYTES, Layout
from rackloop_models.local_erasure._mount import require_mount_point, serve_files, unmount
from rackloop_models.local_erasure._redundancy import UpdateMethod
from rackloop_models.local_erasure._scrub import GroupName, Progress, ScrubReport
from rackloop_models.local_erasure._statistics import Statistics
from rackloop_models.local_erasure._store import CACHE_BYTES, IN_FLIGHT_BYTES, LocalStore, format_drive
from rackloop_models.local_erasure._stored_file import FileStatus, StoredFile

__all__ = [
    "CACHE_BYTES",
    "IN_FLIGHT_BYTES",
    "SECTOR_BYTES",
    "FileExists",
    "FileStatus",
    "FolderNotEmpty",
    "GroupName",
    "GroupUnrecoverable",
    "Layout",
    "LocalStore",
    "NameTooLong",
    "NoRoom",
    "NoStore",
    "NoSuchFile",
    "Progress",
    "ReadMode",
    "ReplicasDisagree",
    "ScrubReport",
    "Statistics",
    "StoreInUse",
    "StoredFile",
    "UnknownSuperblock",
    "UpdateMethod",
    "format_drive",
    "require_mount_point",
    "require_name",
    "serve_files",
    "unmount",
]
