"""The schedule commands."""

from rackloop_cli.schedule._app import schedule_app

__all__ = ["schedule_app"]
