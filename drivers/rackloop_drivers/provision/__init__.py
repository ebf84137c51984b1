"""Provisioning of servers by Ansible."""

from rackloop_drivers.provision._inventory import SshReach, inventory, ssh_config
from rackloop_drivers.provision._provisioner import HostTally, Provisioned, Provisioner
from rackloop_drivers.provision._tasks import TaskDone, TaskStatus

__all__ = [
    "HostTally",
    "Provisioned",
    "Provisioner",
    "SshReach",
    "TaskDone",
    "TaskStatus",
    "inventory",
    "ssh_config",
]
