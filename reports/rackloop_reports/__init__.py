"""Views of a run's event stream: summary, JUnit, Allure, plots."""
