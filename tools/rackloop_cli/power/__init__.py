"""The power commands."""

from rackloop_cli.power._app import power_app as power_app
