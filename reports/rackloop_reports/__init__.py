"""Views of a run's event stream: summary, JUnit, Allure, plots."""

from rackloop_reports.rendering import RenderedReport, record, render

__all__ = ["RenderedReport", "record", "render"]
