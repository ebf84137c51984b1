"""Views of a run's event stream: summary, JUnit, Allure, plots."""

from rackloop_reports.rendering import RenderedReport, render

__all__ = ["RenderedReport", "render"]
