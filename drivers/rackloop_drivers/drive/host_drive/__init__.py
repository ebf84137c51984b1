"""A drive of a server, asked through the tools of that server, and how it erases itself."""

from rackloop_drivers.drive.host_drive._driver import HostDrive as HostDrive
from rackloop_drivers.drive.host_drive._interrupted import ERASING as ERASING
from rackloop_drivers.drive.host_drive._interrupted import InterruptedErasure as InterruptedErasure
