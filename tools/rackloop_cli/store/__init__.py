"""The store commands."""

from rackloop_cli.store._app import store_app as store_app
