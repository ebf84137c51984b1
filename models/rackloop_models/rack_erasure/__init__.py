"""Erasure codes across the drives of a rack: stripes of k + m units, each on a drive of its own."""

from rackloop_models.rack_erasure._errors import NoStripedStore as NoStripedStore
from rackloop_models.rack_erasure._errors import NoSuchObject as NoSuchObject
from rackloop_models.rack_erasure._errors import StripeLost as StripeLost
from rackloop_models.rack_erasure._errors import TooFewDrives as TooFewDrives
from rackloop_models.rack_erasure._layout import Layout as Layout
from rackloop_models.rack_erasure._layout import StripeCode as StripeCode
from rackloop_models.rack_erasure._layout import Unit as Unit
from rackloop_models.rack_erasure._layout import needed_bytes as needed_bytes
from rackloop_models.rack_erasure._opening import format_store as format_store
from rackloop_models.rack_erasure._rebuild import RebuildReport as RebuildReport
from rackloop_models.rack_erasure._scrub import ScrubReport as ScrubReport
from rackloop_models.rack_erasure._server_loss import Recovery as Recovery
from rackloop_models.rack_erasure._server_loss import RecoveryController as RecoveryController
from rackloop_models.rack_erasure._server_loss import ServerLoss as ServerLoss
from rackloop_models.rack_erasure._state import DriveState as DriveState
from rackloop_models.rack_erasure._state import Health as Health
from rackloop_models.rack_erasure._state import RecoveryState as RecoveryState
from rackloop_models.rack_erasure._state import Statistics as Statistics
from rackloop_models.rack_erasure._store import StripedStore as StripedStore
from rackloop_models.rack_erasure._throttle import Throttle as Throttle
