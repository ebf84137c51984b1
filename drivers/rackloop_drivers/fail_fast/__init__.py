"""Drives of servers that give up on a sector within a time, instead of trying again for seconds."""

from rackloop_drivers.fail_fast._driver import FAIL_FAST as FAIL_FAST
from rackloop_drivers.fail_fast._driver import FailFast as FailFast
