"""Variables that a shipped playbook is given: their names and kinds are judged before a server is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop.plan import find_playbook
from rackloop_drivers.provision._variables import require_variables


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("network_tuning_link", ["ens1"], "no role of site.yml has a variable 'network_tuning_link'; did you mean"),
        ("nosuch", 1, "no role of site.yml has a variable 'nosuch'"),
        ("kernel_ahci_libata_force", "nolpm", "is 'nolpm': expected a list; write kernel_ahci_libata_force="),
        ("nvme_tcp_target_hosts", "nqn.h", "is 'nqn.h': expected a list"),
        ("network_tuning_links", None, "is None: expected a list"),
        ("network_tuning_offloads", "tso=true", "is 'tso=true': expected a dict"),
    ],
)
def test_a_variable_that_no_role_takes_so_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        require_variables(find_playbook("site"), {name: value})
    assert said in str(caught.value)


@pytest.mark.parametrize("playbook", ["site", "undo"])
def test_variables_as_the_roles_specify_them_are_taken(playbook: str) -> None:
    variables = {
        "network_tuning_links": ["lo"],
        "network_tuning_mtu": 1500,
        "network_tuning_offloads": {"tso": False},
        "nvme_tcp_target_hosts": [],
        "kernel_ahci_libata_force": "{{ ['nolpm'] }}",
        "ansible_become_flags": "-n",
    }
    require_variables(find_playbook(playbook), variables)


def test_a_playbook_of_ones_own_takes_any_variable(tmp_path: Path) -> None:
    require_variables(tmp_path / "own.yml", {"vendor_image": "2.1.0"})
