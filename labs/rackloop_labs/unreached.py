"""Errors of a server that cannot be asked, which say nothing about its drives."""

from __future__ import annotations

from rackloop.errors import HostKeyMismatch, HostKeyUnknown, LoginRefused, NotConnected

UNREACHED = (NotConnected, LoginRefused, HostKeyUnknown, HostKeyMismatch)
"""It does not answer, does not let us in, or is another."""
