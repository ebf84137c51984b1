"""Views of a run's event stream: summary, JUnit, Allure, plots."""

from rackloop_reports.allure import ReportToolMissing
from rackloop_reports.rendering import RenderedReport, render, write_summary

__all__ = ["RenderedReport", "ReportToolMissing", "render", "write_summary"]
