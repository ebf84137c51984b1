"""Test plans: which tests run on a lab, with which parameters and limits."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.plan._plan import (
        Plan,
        PlanEntry,
        Provision,
        find_testplans,
        load_plan,
        override,
        require_parts,
        resolved,
    )
    from rackloop.plan._plan_text import plan_yaml
    from rackloop.plan._playbooks import find_playbook, roles_of
    from rackloop.plan._testplans import files_by_name, read_declared

__all__ = [
    "Plan",
    "PlanEntry",
    "Provision",
    "files_by_name",
    "find_playbook",
    "find_testplans",
    "load_plan",
    "override",
    "plan_yaml",
    "read_declared",
    "require_parts",
    "resolved",
    "roles_of",
]

__getattr__ = lazy_getattr(__name__)
