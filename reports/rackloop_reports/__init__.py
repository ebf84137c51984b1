"""Views of a run's event stream: summary, JUnit, Allure, plots."""

from rackloop_reports.allure_process import ReportToolMissing as ReportToolMissing
from rackloop_reports.rendering import RenderedReport as RenderedReport
from rackloop_reports.rendering import render as render
from rackloop_reports.rendering import write_summary as write_summary
