"""The trace commands."""

from rackloop_cli.trace._app import trace_app as trace_app
