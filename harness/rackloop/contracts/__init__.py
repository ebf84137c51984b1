"""The behaviour every ability owes its callers: plain functions that take a driver factory and know no pytest."""

from rackloop.contracts._clause import PATIENCE_S as PATIENCE_S
