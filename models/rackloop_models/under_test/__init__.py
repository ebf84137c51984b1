"""Systems under test of the oracles: our own stores and Linux md of recovery, our switch and foreign boxes of fairness.

The oracles are ``rackloop_oracles.recovery`` and ``rackloop_oracles.fairness``.
"""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_models.under_test._described_exports import BoxFile as BoxFile
    from rackloop_models.under_test._described_exports import DescribedExports as DescribedExports
    from rackloop_models.under_test._local_store import LocalStoreUnderTest as LocalStoreUnderTest
    from rackloop_models.under_test._md import MdArray as MdArray
    from rackloop_models.under_test._md import MdMember as MdMember
    from rackloop_models.under_test._md import MdStatus as MdStatus
    from rackloop_models.under_test._md import parse_md as parse_md
    from rackloop_models.under_test._md_layout import md_stripe as md_stripe
    from rackloop_models.under_test._md_system import MdSystem as MdSystem
    from rackloop_models.under_test._striped_store import StripedStoreUnderTest as StripedStoreUnderTest
    from rackloop_models.under_test._switch import SwitchUnderTest as SwitchUnderTest

__getattr__ = lazy_getattr(__name__)
