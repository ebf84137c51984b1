"""The trace commands."""

from rackloop_cli.trace._app import trace_app

__all__ = ["trace_app"]
