"""The page in a real browser, as a visitor uses it."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from ui.samples import draw_samples


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return draw_samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(autouse=True)
def compare_tab(page):
    page.get_by_role("tab", name="Compare").click()


def result(page):
    return page.locator("#compare-result")


def upload(page, first, second):
    """Choose two files, as with the file dialog."""
    for place, file in (("#first-picture", first), ("#second-picture", second)):
        page.locator(f"{place} input[type=file]").set_input_files(file)


def test_a_stranger_knows_what_to_do(page):
    expect(page).to_have_title("Readleaf")
    expect(page.get_by_role("heading", name="Readleaf")).to_be_visible()
    expect(page.get_by_role("tab", name="Compare")).to_be_visible()
    expect(result(page)).to_contain_text("Choose two pictures")


def test_only_tabs_that_work_are_there(page):
    expect(page.get_by_role("tab")).to_have_text(
        ["Find similar", "Classify", "Identify", "Verify", "Figures", "Read", "Compare"]
    )


def test_compare_two_uploads(page, samples):
    upload(page, samples["oak-1"], samples["oak-2"])
    expect(result(page)).to_contain_text("Very alike")
    assert page.complaints == []


def test_try_the_samples(page):
    page.locator("tbody tr").nth(1).click()
    expect(result(page)).to_contain_text("Similarity")
    expect(result(page).locator("svg.rl-scale")).to_be_visible()


@pytest.mark.parametrize(
    ("kept", "sentence"), [(9000, "Image 2 (leaf.jpg) is a damaged JPEG file"), (0, "Image 2 (leaf.jpg) has no bytes")]
)
def test_a_broken_file_gives_a_sentence(page, samples, tmp_path, kept, sentence):
    broken = tmp_path / "leaf.jpg"
    broken.write_bytes(samples["willow"].read_bytes()[:kept])
    upload(page, samples["oak-1"], broken)
    expect(result(page)).to_contain_text(sentence)


def test_a_letter_renamed_to_jpg_gives_a_sentence_and_no_path(page, page_service, samples, tmp_path):
    letter = tmp_path / "letter.jpg"
    letter.write_text("Dear all,")
    upload(page, letter, samples["oak-1"])
    expect(result(page)).to_contain_text("Image 1 (letter.jpg) is not an image that can be read")
    expect(page.get_by_text("uploads")).to_have_count(0)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_no_other_host_is_asked_for_anything(page, page_service, path):
    page.wait_for_load_state("networkidle")  # what the first visit still loads must not be cut off
    page.asked.clear()
    page.goto(page_service.url + path)
    page.wait_for_load_state("networkidle")
    assert len(page.asked) > 2
    own = urlsplit(page_service.url).netloc
    assert {urlsplit(url).netloc for url in page.asked if not url.startswith(("data:", "blob:"))} == {own}
    assert page.complaints == []


def test_docs_show_the_contract(page, page_service):
    page.goto(page_service.url + "/docs")
    expect(page.get_by_text("/v1/embed", exact=True)).to_be_visible()


def test_a_phone_shows_it_whole(page):
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("tab", name="Compare")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_api_stays_itself_beside_the_page(page_service):
    for method, path, status in (("GET", "/v1/nowhere", 404), ("GET", "/v1/embed", 405), ("POST", "/health/live", 405)):
        answer = page_service.http.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
    assert page_service.http.get("/health/ready").status_code == 200
