"""A service with keys: nobody sees the page without one, and who signs in is known by the key's name."""

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

import readleaf


@pytest.fixture
def guarded(run_service, tmp_path):
    """A service with its page, and a key of an expert named Ann."""
    made = CliRunner().invoke(
        readleaf.app, ["keys", "create", "--name", "Ann", "--role", "expert", "--data-dir", str(tmp_path / "data")]
    )
    assert made.exit_code == 0, made.output
    with run_service(tmp_path / "data", ui=True, starter=True) as service:
        yield service, made.stdout.strip()


def test_signing_in(guarded, chromium, photo, encoded):
    service, key = guarded
    for path in ("/gradio_api/info", "/config", "/gradio_api/upload", "/v1/collections"):
        assert service.http.request("POST" if "upload" in path else "GET", path).status_code == 401
    context = chromium.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(service.url)
    field = page.get_by_label("Your API key")
    expect(field).to_be_focused()
    field.fill("rl_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")
    field.fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Find similar")).to_be_visible(timeout=30_000)
    assert page.evaluate("document.cookie") == ""  # scripts cannot read it
    # What the page asks the service for, it asks with the visitor's key.
    expect(page.locator("#similar-result")).to_contain_text("flowers and leaves", timeout=30_000)
    page.locator("#query-picture input[type=file]").set_input_files(
        {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": encoded(photo())}
    )
    expect(page.locator("#similar-result h2")).to_be_visible(timeout=30_000)
    context.close()
