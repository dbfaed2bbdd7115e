"""The Read tab in a real browser."""

import pytest
from playwright.sync_api import expect

from ui.words import draw_words


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return {file.stem: file for file in draw_words(tmp_path_factory.mktemp("words"))}


@pytest.fixture(autouse=True)
def read_tab(page):
    page.get_by_role("tab", name="Read").click()


def result(page):
    return page.locator("#read-result")


def upload(page, file):
    page.locator("#word-picture input[type=file]").set_input_files(file)


def test_a_stranger_knows_what_to_do(page):
    expect(result(page)).to_contain_text("Drop a picture of one word")


def test_a_word_is_read_with_its_characters(page, words):
    upload(page, words["plate"])
    expect(result(page).get_by_role("heading")).to_have_text("N17-4GU")
    expect(result(page).locator(".rl-letters > li b")).to_have_text(list("N17-4GU"))
    expect(result(page)).to_contain_text("likely right")
    assert page.complaints == []


def test_a_word_on_its_side(page, words):
    upload(page, words["sideways"])
    expect(result(page)).to_contain_text("LIBRARY")
    expect(result(page)).to_contain_text("turned by 90°")


def test_the_word_can_be_copied(page, words):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    upload(page, words["sign"])
    page.get_by_role("button", name="Copy the word").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "Botanic"


def test_a_blank_picture(page, tmp_path, photo):
    photo(200, 60).point(lambda _: 255).save(tmp_path / "blank.png")
    upload(page, tmp_path / "blank.png")
    expect(result(page)).to_contain_text("Nothing to read")


def test_a_broken_file_gives_a_sentence(page, words, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(words["sign"].read_bytes()[:4000])
    upload(page, broken)
    expect(result(page)).to_contain_text("Image 1 (broken.jpg) is a damaged JPEG file")


def test_try_an_example(page):
    page.locator("#words button, #words td").first.click()
    expect(result(page)).to_contain_text("Botanic")
