"""Pictures of a report for the documents, taken in a browser.

    .rackloop/venv/bin/python tools/report_pictures.py first --browser /usr/bin/chromium

``first`` is the directory of a run of the demo. Playwright is none of the project's packages: install it where this
script is started from (``pip install playwright``), with any Chromium for ``--browser``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "tutorials" / "images"
TEST = "Remap latency"
PLOT = "Stages of a remap"
_SETTLE_MS = 3000


@dataclass(frozen=True)
class Picture:
    """One picture: its file, what of the report it shows, and the window it is taken in."""

    file: str
    of: str
    width: int
    height: int
    scheme: str = "light"


PICTURES = (
    Picture("report.png", "overview", 1280, 1500),
    Picture("report-dark.png", "overview", 1280, 1000, "dark"),
    Picture("report-narrow.png", "overview", 400, 1000),
    Picture("report-narrow-dark.png", "overview", 400, 1000, "dark"),
    Picture("test.png", "test", 1280, 1600),
    Picture("test-dark.png", "test", 1280, 1000, "dark"),
    Picture("test-narrow.png", "test", 400, 1000),
    Picture("test-narrow-dark.png", "test", 400, 1000, "dark"),
    Picture("stages.png", "plot", 960, 0),
)


def address(run: Path, of: str) -> str:
    """The address of what a picture shows. Raises SystemExit where the run has nothing of the kind."""
    index = run.resolve() / "report" / "index.html"
    if of == "overview":
        return index.as_uri()
    if of == "test":
        listed = json.loads(index.with_name("test-results.json").read_text(encoding="utf-8"))["byId"]
        found = [test for test, facts in listed.items() if facts["name"] == TEST]
        return f"{index.as_uri()}#{found[0]}" if found else sys.exit(f"{run} has no test called {TEST}")
    slug = re.sub(r"[^a-z]+", "-", PLOT.lower())
    plots = sorted((run / "allure-results").glob(f"rackloop-run-{slug}*.svg"))
    return plots[0].resolve().as_uri() if plots else sys.exit(f"{run} has no plot called {PLOT}")


def take(browser: Any, run: Path, picture: Picture, images: Path) -> None:
    """Take one picture; one without a height is as high as what it shows."""
    size = {"width": picture.width, "height": picture.height or 100}
    page = browser.new_page(viewport=size, color_scheme=picture.scheme)
    page.goto(address(run, picture.of))
    page.wait_for_timeout(_SETTLE_MS)
    if picture.height:
        page.screenshot(path=images / picture.file)
    else:
        page.locator("svg").first.screenshot(path=images / picture.file)
    page.close()


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description="Take the pictures of a report that the documents show.")
    parser.add_argument("run", type=Path, help="the directory of a run of the demo, with its report")
    parser.add_argument("--browser", required=True, help="a Chromium")
    parser.add_argument("--images", type=Path, default=IMAGES, help="where the pictures go")
    given = parser.parse_args()
    if not (given.run / "report" / "index.html").is_file():
        sys.exit(f"{given.run} has no report: give the directory of a run, or make it with `rackloop report`")
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ModuleNotFoundError:
        sys.exit("playwright is not installed: pip install playwright, in an environment of your own")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=given.browser, args=["--no-sandbox"])
        for picture in PICTURES:
            take(browser, given.run, picture, given.images)
        browser.close()


if __name__ == "__main__":
    main()
