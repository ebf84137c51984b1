"""The lab commands."""

from rackloop_cli.lab._app import lab_app

__all__ = ["lab_app"]
