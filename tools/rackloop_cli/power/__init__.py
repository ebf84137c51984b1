"""The power commands."""

from rackloop_cli.power._app import power_app

__all__ = ["power_app"]
