"""The store commands."""

from rackloop_cli.store._app import store_app

__all__ = ["store_app"]
