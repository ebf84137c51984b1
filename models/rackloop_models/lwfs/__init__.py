"""LWFS: a log-structured store on a drive whose metadata are elsewhere, guarded by capability tokens."""

from rackloop_models.lwfs._client import Locator as Locator
from rackloop_models.lwfs._client import LwfsClient as LwfsClient
from rackloop_models.lwfs._client import LwfsFile as LwfsFile
from rackloop_models.lwfs._counted_blocks import CountedBlocks as CountedBlocks
from rackloop_models.lwfs._metadata import FileExists as FileExists
from rackloop_models.lwfs._metadata import Grant as Grant
from rackloop_models.lwfs._metadata import MetadataService as MetadataService
from rackloop_models.lwfs._metadata import NoRoom as NoRoom
from rackloop_models.lwfs._metadata import NoSuchFile as NoSuchFile
from rackloop_models.lwfs._record import HEADER_BYTES as HEADER_BYTES
from rackloop_models.lwfs._record import DriveKey as DriveKey
from rackloop_models.lwfs._record import NoStore as NoStore
from rackloop_models.lwfs._server import Address as Address
from rackloop_models.lwfs._server import NotHere as NotHere
from rackloop_models.lwfs._server import RecordDamaged as RecordDamaged
from rackloop_models.lwfs._server import Recovered as Recovered
from rackloop_models.lwfs._server import StorageServer as StorageServer
from rackloop_models.lwfs._server import Tail as Tail
from rackloop_models.lwfs._token import KEY_BYTES as KEY_BYTES
from rackloop_models.lwfs._token import Extent as Extent
from rackloop_models.lwfs._token import Refusal as Refusal
from rackloop_models.lwfs._token import Rights as Rights
from rackloop_models.lwfs._token import Token as Token
from rackloop_models.lwfs._token import TokenRefused as TokenRefused
