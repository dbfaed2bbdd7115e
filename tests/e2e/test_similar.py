"""Find similar in a real browser: a collection is made, filled, searched, mended."""

import zipfile

import pytest
from playwright.sync_api import expect

KINDS = ("oak", "willow", "maple")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, photo):
    """Three kinds of three pictures; those of a kind are shades of one another."""
    folder = tmp_path_factory.mktemp("pictures")
    files = {}
    for seed, kind in enumerate(KINDS):
        for shade in range(3):
            file = folder / f"{kind}-{shade}.jpg"
            photo(seed=seed).point(lambda value, shade=shade: value * (1 - 0.08 * shade)).save(file)
            files[kind, shade] = file
    return files


def result(page):
    return page.locator("#similar-result")


def note(page):
    return page.locator("#similar-note")


def choose(page, place, text):
    """Pick an entry of a drop-down list."""
    page.locator(f"{place} input").click()
    page.get_by_role("option", name=text).first.click()


def test_make_fill_search_mend_delete(page, pictures):
    expect(result(page)).to_contain_text("no collection yet")
    page.get_by_role("button", name="Collections").click()
    page.locator("#new-name input, #new-name textarea").fill("my leaves")
    page.locator("#create").click()
    expect(note(page)).to_contain_text("My leaves is ready")
    expect(page.locator("#collection input")).to_have_value("my leaves")

    for kind in KINDS:
        page.locator("#many-files input[type=file]").set_input_files([pictures[kind, shade] for shade in (0, 1)])
        page.locator("#many-label input, #many-label textarea").fill(kind)
        page.locator("#fill").click()
        expect(note(page)).to_contain_text("2 of 2 pictures were added to my leaves")
        expect(page.locator("#many-files")).to_contain_text("Drop File Here")
        page.locator("#new-name").click()

    page.locator("#query-picture input[type=file]").set_input_files(pictures["willow", 2])
    cards = page.locator(".rl-card")
    expect(cards).to_have_count(6)
    expect(cards.nth(0)).to_contain_text("willow")
    expect(cards.nth(1)).to_contain_text("willow")
    expect(cards.nth(0).locator("img")).to_have_js_property("complete", True)
    assert cards.nth(0).locator("img").evaluate("image => image.naturalWidth") > 0
    expect(result(page).locator("h2")).to_contain_text("willow")

    choose(page, "#chosen", "1. willow")
    page.locator("#better-label input, #better-label textarea").fill("white willow")
    page.locator("#relabel").click()
    expect(note(page)).to_contain_text("is now white willow")
    expect(cards.nth(0)).to_contain_text("white willow")

    choose(page, "#chosen", "1. white willow")
    page.locator("#remove").click()
    expect(note(page)).to_contain_text("is deleted")
    expect(cards).to_have_count(5)
    expect(result(page)).not_to_contain_text("white willow")

    page.locator("#new-label input, #new-label textarea").fill("grey willow")
    page.locator("#add").click()
    expect(note(page)).to_contain_text("Added to my leaves as grey willow")
    expect(cards.nth(0)).to_contain_text("grey willow")
    page.locator("#add").click()
    expect(note(page)).to_contain_text("This picture is item")
    assert page.complaints == []


def test_a_zip_file_fills_a_collection(page, page_service, pictures, tmp_path):
    archive = tmp_path / "leaves.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for (kind, shade), file in pictures.items():
            packed.write(file, f"leaves/{kind}/{shade}.jpg")
        packed.writestr("leaves/oak/readme.txt", "nothing to see")
    page_service.client.create_collection("zipped")
    page.reload()
    choose(page, "#collection", "zipped")
    page.get_by_role("button", name="Collections").click()
    page.locator("#many-files input[type=file]").set_input_files(archive)
    page.locator("#fill").click()
    expect(note(page)).to_contain_text("9 of 10 pictures were added to zipped; leaves/oak/readme.txt:")
    labels = {entry.label: entry.items for entry in page_service.client.collection("zipped").labels}
    assert labels == {"oak": 3, "willow": 3, "maple": 3}
    page_service.client.delete_collection("zipped")


def test_what_cannot_be_done_is_said(page, page_service, tmp_path):
    page_service.client.create_collection("another place")
    page.reload()
    choose(page, "#collection", "another place")
    letter = tmp_path / "letter.jpg"
    letter.write_text("Dear Sir or Madam")
    page.locator("#query-picture input[type=file]").set_input_files(letter)
    expect(result(page)).to_contain_text("is not an image that can be read")
    page.get_by_role("button", name="Collections").click()
    page.locator("#new-name input, #new-name textarea").fill("another place")
    page.locator("#create").click()
    expect(note(page)).to_contain_text("There is a collection named")
    page.locator("#many-files input[type=file]").set_input_files(letter)
    page.locator("#fill").click()
    expect(note(page)).to_contain_text("0 of 1 pictures were added to another place; letter.jpg:")
    page_service.client.delete_collection("another place")
