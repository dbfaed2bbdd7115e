"""Find similar in a real browser: a collection is made, filled, searched, mended."""

import shutil
import zipfile

import pytest
from PIL import Image
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


def text_field(page, place):
    return page.locator(f"{place} input, {place} textarea")


def test_make_fill_search_mend_delete(page, pictures, tmp_path):
    expect(result(page)).to_contain_text("no collection yet")
    page.get_by_role("button", name="Collections").click()
    text_field(page, "#new-name").fill("my leaves")
    page.locator("#create").click()
    expect(note(page)).to_contain_text("My leaves is ready")
    expect(page.locator("#collection input")).to_have_value("my leaves")
    expect(result(page)).to_contain_text("my leaves is empty")

    folder = tmp_path / "herbarium"
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        for shade in (0, 1):
            shutil.copy(pictures[kind, shade], folder / kind)
    (folder / "notes.txt").write_text("not a picture")
    page.locator("#folder input[type=file]").set_input_files(folder)
    expect(note(page)).to_contain_text("6 of 6 pictures were added to my leaves")
    expect(result(page)).to_contain_text("6 pictures of 3 kinds in my leaves")

    page.locator("#query-picture input[type=file]").set_input_files(pictures["willow", 2])
    cards = page.locator(".rl-card")
    expect(cards).to_have_count(6)
    expect(cards.nth(0)).to_contain_text("willow")
    expect(cards.nth(1)).to_contain_text("willow")
    expect(cards.nth(0).locator("img")).to_have_js_property("complete", True)
    assert cards.nth(0).locator("img").evaluate("image => image.naturalWidth") > 0
    expect(result(page).locator("h2")).to_contain_text("willow")

    cards.nth(0).get_by_role("button", name="Wrong label?").click()
    expect(text_field(page, "#better-label")).to_have_value("willow")
    text_field(page, "#better-label").fill("white willow")
    page.locator("#relabel").click()
    expect(note(page)).to_contain_text("is now white willow")
    expect(cards.nth(0)).to_contain_text("white willow")

    choose(page, "#only", "oak")
    expect(cards).to_have_count(2)
    expect(result(page).locator("h2")).to_have_text("The most similar of oak")
    choose(page, "#only", "anything")
    expect(cards).to_have_count(6)

    cards.nth(0).get_by_role("button", name="Wrong label?").click()
    page.locator("#remove").click()
    expect(note(page)).to_contain_text("is deleted")
    expect(cards).to_have_count(5)
    expect(result(page)).not_to_contain_text("white willow")

    text_field(page, "#new-label").fill("grey willow")
    page.locator("#add").click()
    expect(note(page)).to_contain_text("Added to my leaves as grey willow")
    expect(cards.nth(0)).to_contain_text("grey willow")
    page.locator("#add").click()
    expect(note(page)).to_contain_text("This picture is item")

    answers = iter((False, True))
    page.on("dialog", lambda dialog: dialog.accept() if next(answers) else dialog.dismiss())
    page.locator("#drop").click()
    expect(cards).to_have_count(6)
    page.locator("#drop").click()
    expect(note(page)).to_contain_text("My leaves is deleted")
    expect(result(page)).to_contain_text("no collection yet")
    assert list(answers) == []
    assert page.complaints == []


def test_a_part_of_the_picture(page, page_service, pictures, tmp_path):
    """Two things, one above the other: a frame around one finds that one, and all of it is looked at afterwards."""
    page_service.client.create_collection("parts")
    for kind in ("oak", "willow"):
        page_service.client.add_item("parts", pictures[kind, 0], kind)
    both = Image.new("RGB", (300, 440))
    for place, kind in enumerate(("oak", "willow")):
        both.paste(Image.open(pictures[kind, 0]), (0, 220 * place))
    both.save(tmp_path / "both.png")
    page.reload()
    choose(page, "#collection", "parts")
    page.locator("#query-picture input[type=file]").set_input_files(tmp_path / "both.png")
    first = page.locator(".rl-card").first
    expect(first).to_be_visible()
    for kind, top in (("willow", 0.51), ("oak", 0.01)):
        page.get_by_role("button", name="Look at a part of it").click()
        pane = page.locator(".rl-pane").bounding_box()
        assert pane["width"] / pane["height"] == pytest.approx(300 / 440, rel=0.02)
        shown = page.locator("#query-picture img").bounding_box()
        for start, size in (("x", "width"), ("y", "height")):  # the picture is in the middle of its element
            assert pane[start] + pane[size] / 2 == pytest.approx(shown[start] + shown[size] / 2, abs=1.5)
        page.mouse.move(pane["x"] + 0.01 * pane["width"], pane["y"] + top * pane["height"])
        page.mouse.down()
        page.mouse.move(pane["x"] + 0.5 * pane["width"], pane["y"] + (top + 0.2) * pane["height"])
        page.mouse.move(pane["x"] + 0.99 * pane["width"], pane["y"] + (top + 0.48) * pane["height"])
        page.mouse.up()
        expect(first).to_contain_text(kind)
        expect(page.locator("#region")).to_contain_text("the part in the frame")
        expect(page.locator("#keep")).to_be_hidden()
        assert float(first.locator("small").inner_text()) > 0.9
        page.get_by_role("button", name="Look at all of it").click()
        expect(page.locator(".rl-pane")).to_have_count(0)
    page.get_by_role("button", name="Look at a part of it").click()
    page.locator("#gallery img").first.click()  # another picture in the same place
    expect(page.locator(".rl-pane")).to_have_count(0)
    page_service.client.delete_collection("parts")
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
    text_field(page, "#new-name").fill("another place")
    page.locator("#create").click()
    expect(note(page)).to_contain_text("There is a collection named")
    page.locator("#many-files input[type=file]").set_input_files(letter)
    page.locator("#fill").click()
    expect(note(page)).to_contain_text("0 of 1 pictures were added to another place; letter.jpg:")
    page_service.client.delete_collection("another place")


def test_out_of_the_box(chromium, run_service, tmp_path):
    """A new service, one click: the sunflower that is drawn for visitors is named, and a cat is refused."""
    with run_service(tmp_path / "data", ui=True, starter=True) as service:
        page = chromium.new_page()
        page.goto(service.url)
        expect(result(page)).to_contain_text("91 kinds in flowers and leaves")
        page.locator("#gallery img").first.click()
        expect(result(page).locator("h2")).to_have_text("Probably sunflower")
        page.locator("#gallery img").nth(5).click()
        expect(result(page).locator("h2")).to_have_text("None of these")
        page.close()
