"""The fabric commands."""

from rackloop_cli.fabric._app import fabric_app as fabric_app
