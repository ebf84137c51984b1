"""The model commands."""

from rackloop_cli.model._app import model_app as model_app
