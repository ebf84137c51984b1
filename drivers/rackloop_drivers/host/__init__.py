"""Commands and files on servers, by SSH, and on this machine."""

from rackloop_drivers.host._access import SshAccess
from rackloop_drivers.host._local import LocalExecutor
from rackloop_drivers.host._many import run_on_all
from rackloop_drivers.host._process import SshProcess
from rackloop_drivers.host._ssh import NOBODY, SshHost

__all__ = ["NOBODY", "LocalExecutor", "SshAccess", "SshHost", "SshProcess", "run_on_all"]
