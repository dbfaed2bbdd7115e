"""A real Chromium, and a service with its page."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=20_000)  # milliseconds; a busy machine is slow, not wrong
# Chromium's own calls home have nothing to do with the page, and no network to go to.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser; `make test` installs it. Not for the whole session: it keeps an event loop running."""
    found = shutil.which("chromium")
    assert found, "the browser tests need Chromium: sudo apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def page_service(run_service, tmp_path_factory):
    """The service as `readleaf serve` runs it: API and page on one port."""
    with run_service(tmp_path_factory.mktemp("page"), ui=True) as running:
        yield running


@pytest.fixture
def page(chromium: Browser, page_service) -> Iterator[Page]:
    """The opened page. Requests and errors are noted in `page.asked` and `page.complaints`."""
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    opened = context.new_page()
    opened.asked = []
    opened.complaints = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("console", lambda line: opened.complaints.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.goto(page_service.url)
    yield opened
    context.close()
