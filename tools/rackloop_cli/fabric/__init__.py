"""The fabric commands."""

from rackloop_cli.fabric._app import fabric_app

__all__ = ["fabric_app"]
