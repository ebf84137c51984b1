"""Rackloop's own stores as systems under test of the recovery oracle (``rackloop.recovery``)."""

from rackloop_models.under_test._local_store import LocalStoreUnderTest
from rackloop_models.under_test._striped_store import StripedStoreUnderTest

__all__ = ["LocalStoreUnderTest", "StripedStoreUnderTest"]
