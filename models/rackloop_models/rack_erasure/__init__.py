"""Erasure codes across the drives of a rack: stripes of k + m units, each on a drive of its own."""

from rackloop_models.rack_erasure._errors import NoStripedStore, NoSuchObject, StripeLost, TooFewDrives
from rackloop_models.rack_erasure._layout import Layout, StripeCode, Unit, needed_bytes
from rackloop_models.rack_erasure._opening import format_store
from rackloop_models.rack_erasure._rebuild import RebuildReport
from rackloop_models.rack_erasure._scrub import ScrubReport
from rackloop_models.rack_erasure._server_loss import Recovery, RecoveryController, ServerLoss
from rackloop_models.rack_erasure._state import DriveState, Health, RecoveryState, Statistics
from rackloop_models.rack_erasure._store import StripedStore
from rackloop_models.rack_erasure._throttle import Throttle

__all__ = [
    "DriveState",
    "Health",
    "Layout",
    "NoStripedStore",
    "NoSuchObject",
    "RebuildReport",
    "Recovery",
    "RecoveryController",
    "RecoveryState",
    "ScrubReport",
    "ServerLoss",
    "Statistics",
    "StripeCode",
    "StripeLost",
    "StripedStore",
    "Throttle",
    "TooFewDrives",
    "Unit",
    "format_store",
    "needed_bytes",
]
