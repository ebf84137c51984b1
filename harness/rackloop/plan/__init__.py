"""Test plans: which tests run on a lab, with which parameters and limits."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.plan._plan import Plan as Plan
    from rackloop.plan._plan import PlanEntry as PlanEntry
    from rackloop.plan._plan import Provision as Provision
    from rackloop.plan._plan import find_testplans as find_testplans
    from rackloop.plan._plan import load_plan as load_plan
    from rackloop.plan._plan import override as override
    from rackloop.plan._plan import require_parts as require_parts
    from rackloop.plan._plan import resolved as resolved
    from rackloop.plan._plan_text import plan_yaml as plan_yaml
    from rackloop.plan._playbooks import find_playbook as find_playbook
    from rackloop.plan._playbooks import roles_of as roles_of
    from rackloop.plan._testplans import files_by_name as files_by_name
    from rackloop.plan._testplans import path_of as path_of
    from rackloop.plan._testplans import read_declared as read_declared

__getattr__ = lazy_getattr(__name__)
