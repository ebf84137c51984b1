"""Provisioning of servers by Ansible."""

from rackloop_drivers.provision._inventory import SshReach as SshReach
from rackloop_drivers.provision._inventory import inventory as inventory
from rackloop_drivers.provision._inventory import ssh_config as ssh_config
from rackloop_drivers.provision._provisioner import HostTally as HostTally
from rackloop_drivers.provision._provisioner import Provisioned as Provisioned
from rackloop_drivers.provision._provisioner import Provisioner as Provisioner
from rackloop_drivers.provision._tasks import TaskDone as TaskDone
from rackloop_drivers.provision._tasks import TaskStatus as TaskStatus
