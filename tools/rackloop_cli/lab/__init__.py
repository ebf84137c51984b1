"""The lab commands."""

from rackloop_cli.lab._app import lab_app as lab_app
