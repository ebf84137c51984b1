"""Storage systems as systems under test of the recovery oracle (``rackloop.recovery``): our own stores and Linux md."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_models.under_test._local_store import LocalStoreUnderTest
    from rackloop_models.under_test._md import MdArray, MdMember, MdStatus, parse_md
    from rackloop_models.under_test._md_layout import md_stripe
    from rackloop_models.under_test._md_system import MdSystem
    from rackloop_models.under_test._striped_store import StripedStoreUnderTest

__all__ = [
    "LocalStoreUnderTest",
    "MdArray",
    "MdMember",
    "MdStatus",
    "MdSystem",
    "StripedStoreUnderTest",
    "md_stripe",
    "parse_md",
]

__getattr__ = lazy_getattr(__name__)
