"""The schedule commands."""

from rackloop_cli.schedule._app import schedule_app as schedule_app
