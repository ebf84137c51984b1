"""Commands and files on servers, by SSH, and on this machine."""

from rackloop_drivers.host._access import SshAccess as SshAccess
from rackloop_drivers.host._complaints import complaints as complaints
from rackloop_drivers.host._local import LocalExecutor as LocalExecutor
from rackloop_drivers.host._many import run_on_all as run_on_all
from rackloop_drivers.host._process import SshProcess as SshProcess
from rackloop_drivers.host._shell import ShellStream as ShellStream
from rackloop_drivers.host._shell import open_shell as open_shell
from rackloop_drivers.host._ssh import NOBODY as NOBODY
from rackloop_drivers.host._ssh import SshHost as SshHost
from rackloop_drivers.host._stream import SshStream as SshStream
