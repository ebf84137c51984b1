"""The model commands."""

from rackloop_cli.model._app import model_app

__all__ = ["model_app"]
