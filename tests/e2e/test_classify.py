"""The Classify tab in a real browser."""

import pytest
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def page_service(run_service, tmp_path_factory, trees_models):
    """A service with the shipped models and one of trees."""
    with run_service(tmp_path_factory.mktemp("classify"), ui=True, models_dir=trees_models) as running:
        yield running


@pytest.fixture(autouse=True)
def classify_tab(page):
    page.get_by_role("tab", name="Classify").click()


@pytest.fixture
def upload(page, kinds, tmp_path):
    def choose(picture):
        picture.save(tmp_path / "tree.png")
        page.locator("#classify-picture input[type=file]").set_input_files(tmp_path / "tree.png")

    return choose


def result(page):
    return page.locator("#classify-result")


def ask_trees(page):
    page.locator("#classify-model input").click()
    page.get_by_role("option", name="trees").click()
    expect(result(page)).to_contain_text("knows 3 kinds")


def test_a_picture_is_named_and_shows_what_speaks_for_it(page, upload, kinds):
    ask_trees(page)
    upload(kinds(2, 1).resize((200, 140)))
    expect(result(page).get_by_role("heading")).to_have_text("oak")
    expect(result(page)).to_contain_text("Of a hundred answers that are as sure as this one")
    expect(result(page).locator(".rl-bar")).to_have_count(3)
    heat, shown = result(page).locator(".rl-heat"), result(page).locator(".rl-looked img").first
    expect(heat).to_be_visible()
    place, whole = heat.bounding_box(), shown.bounding_box()
    assert place["height"] == pytest.approx(whole["height"], abs=2)  # the middle square of a wide picture
    assert place["width"] == pytest.approx(whole["height"], abs=2)
    assert place["x"] + place["width"] / 2 == pytest.approx(whole["x"] + whole["width"] / 2, abs=2)
    result(page).get_by_role("checkbox").uncheck()
    expect(heat).to_have_css("opacity", "0")
    assert page.complaints == []


def test_what_is_common_here_counts(page, upload, kinds):
    from PIL import Image

    ask_trees(page)
    upload(Image.blend(kinds(0, 0), kinds(1, 0), 0.5))
    expect(result(page).locator(".rl-bar")).to_have_count(3)

    def share(label):
        bar = result(page).locator(".rl-bar", has_text=label)
        return float(bar.locator("meter").get_attribute("value"))

    before = share("elm")
    page.locator("#classify-common input").click()
    page.get_by_role("option", name="elm").click()
    page.wait_for_function(
        "before => [...document.querySelectorAll('#classify-result .rl-bar')].some("
        "bar => bar.innerText.includes('elm') && bar.querySelector('meter').value > before)",
        arg=before,
    )
    assert share("elm") > before


def test_a_broken_file_gives_a_sentence(page, tmp_path):
    (tmp_path / "letter.png").write_text("Dear all,")
    page.locator("#classify-picture input[type=file]").set_input_files(tmp_path / "letter.png")
    expect(result(page)).to_contain_text("is not an image that can be read")


def test_a_phone_shows_it_whole(page, upload, kinds):
    page.set_viewport_size({"width": 390, "height": 844})
    upload(kinds(1, 1))
    expect(result(page).locator(".rl-looked")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
