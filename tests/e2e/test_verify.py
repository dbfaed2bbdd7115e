"""Identify and Verify in a real browser: from a folder of plants to an expert's word, by keyboard alone."""

import re
import subprocess
import sys
import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from serving.client import Client

PATIENCE = 30_000  # milliseconds for models to answer, on a machine that has other things to do
PLANTS = ("Quercus robur", "Salix alba", "Acer campestre")
IDENTIFY = "[role=tabpanel]:has(#identify-pictures)"
ENTER = """([who, collection]) => {
  localStorage.setItem("readleaf.reviewer", JSON.stringify(who));
  localStorage.setItem("readleaf.collection", JSON.stringify(collection));
}"""


@pytest.fixture(scope="module")
def page_service(run_service, tmp_path_factory):
    """A service of its own: other tests count on an empty one."""
    with run_service(tmp_path_factory.mktemp("verify"), ui=True) as running:
        yield running


@pytest.fixture(scope="module")
def ask(page_service, kinds, encoded):
    """`ask("grove", [0, 1])`: a collection of three plants, and an observation of each of these kinds."""

    def fill(collection, wanted, pictures=1):
        client = page_service.client
        client.create_collection(collection)
        for kind, name in enumerate(PLANTS):
            for number in range(4):
                client.add_item(collection, encoded(kinds(kind, number)), name)
        made = []
        for place, kind in enumerate(wanted):
            files = [encoded(kinds(kind, 5 + place + 3 * number)) for number in range(pictures)]
            organs = ",".join(["flower", "leaf", "bark"][:pictures])
            made.append(client.submit_observation(collection, files, organs=organs, place="Lobau", notes="half shade"))
        return made

    return fill


def work(page):
    return page.locator("[data-panel=work]")


def heading(page):
    return page.locator(".rv h2:visible")


def status(page):
    return page.locator(".rv-status")


def reload(page):
    page.reload()
    page.complaints.clear()  # Gradio's, of what was cut off


def open_desk(page, who, collection):
    """Verify, as somebody who has given their name before."""
    page.evaluate(ENTER, [who, collection])
    reload(page)
    page.get_by_role("tab", name="Verify").click()
    expect(page.locator(".rv-who")).to_have_text(who)


def shown(page):
    """The number of the observation in sight."""
    expect(work(page)).to_be_visible()
    return int(re.search(r"\d+", heading(page).inner_text())[0])


def test_the_whole_story(page, page_service, kinds, tmp_path):
    """Import, upload, send, verify by keyboard, be found at once, undo, be gone."""
    # Made beforehand, and the first by name, so that it is the one chosen as soon as the page is there.
    page_service.client.create_collection("0 meadow")
    page.reload()
    expect(page.locator("#collection input")).to_have_value("0 meadow")
    page.complaints.clear()  # of requests that the reload cut off
    page.get_by_role("button", name="Collections").click()
    folder = tmp_path / "herbarium"
    for kind, name in enumerate(PLANTS):
        (folder / name).mkdir(parents=True)
        for number in range(4):
            kinds(kind, number).save(folder / name / f"{number}.jpg")
    page.locator("#folder input[type=file]").set_input_files(folder)
    expect(page.locator("#similar-note")).to_contain_text("12 of 12 pictures", timeout=PATIENCE)

    page.get_by_role("tab", name="Identify").click()
    expect(page.locator("#identify-collection input")).to_have_value("0 meadow")
    for number in (5, 7):
        kinds(1, number).save(tmp_path / f"willow-{number}.png")
    files = [tmp_path / "willow-5.png", tmp_path / "willow-7.png"]
    page.locator("#identify-pictures input[type=file]").set_input_files(files)
    found = page.locator("#identify-result")
    expect(found.locator("h2")).to_contain_text("Salix alba", timeout=PATIENCE)
    expect(found.locator(".rv-options img").first).to_have_attribute("alt", "Salix alba, look-alike 1")
    page.get_by_role("button", name="When, where and by whom").click()
    page.locator("#place").locator("input, textarea").fill("Lobau")
    page.locator("#send").click()
    expect(page.locator("#identify-note")).to_contain_text("this is observation 1", timeout=PATIENCE)
    expect(page.locator("#send")).to_be_hidden()  # not twice by mistake

    page.get_by_role("tab", name="Verify").focus()
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Who is verifying?")
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.name") != "reviewer":
        page.keyboard.press("Tab")
    page.keyboard.type("Ana Müller")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Observation 1")
    expect(work(page)).to_contain_text("Lobau")
    expect(page.locator(".rv-accept").first).to_contain_text("Salix alba")
    assert page.locator(".rv-picture img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 90
    page.keyboard.press("1")
    expect(status(page)).to_have_text("Verified as Salix alba. All done.")
    assert page_service.client.observation(1).votes[0].who == "Ana Müller"

    items = {image.item for image in page_service.client.observation(1).images}
    assert items <= {near.item for near in page_service.client.search("0 meadow", files[0]).neighbours[:2]}
    page.keyboard.press("z")
    expect(heading(page)).to_have_text("Observation 1")
    expect(status(page)).to_contain_text("taken back. 1 left.")
    assert not items & {near.item for near in page_service.client.search("0 meadow", files[0], k=50).neighbours}
    assert page.complaints == []


def test_a_reload_loses_nothing(page, page_service, ask):
    ask("reload", [0, 1, 2], pictures=3)
    open_desk(page, "Ana", "reload")
    number = shown(page)
    expect(page.locator(".rv-count")).to_have_text("3 left")
    page.locator(".rv-comment").fill("leaves too round")
    page.locator("h2:visible").first.click()
    page.keyboard.press("n")
    page.keyboard.type("Tilia x 1z")  # keys do nothing else while one types
    page.get_by_label("Rank").select_option("variety")
    reload(page)
    page.get_by_role("tab", name="Verify").click()
    assert shown(page) == number
    expect(page.locator(".rv-comment")).to_have_value("leaves too round")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Tilia x 1z")
    expect(page.get_by_label("Rank")).to_have_value("variety")
    page.get_by_label("Name", exact=True).press("Enter")
    expect(status(page)).to_have_text("Verified as Tilia x 1z. 2 left.")
    [vote] = page_service.client.observation(number).votes
    assert (vote.comment, vote.taxon.rank) == ("leaves too round", "variety")
    expect(page.locator(".rv-comment")).to_have_value("")

    reload(page)
    page.get_by_role("tab", name="Verify").click()
    shown(page)
    page.keyboard.press("z")  # a reload forgets no undo
    expect(heading(page)).to_have_text(f"Observation {number}")
    assert page.complaints == []


def test_every_key(page, page_service, ask):
    ask("keys", [0, 1, 2, 0, 1])
    client = page_service.client
    genus = client.make_taxon("Salix", rank="genus")
    willow = next(taxon for taxon in client.taxa("Salix alba").taxa if taxon.name == "Salix alba")
    client.change_taxon(willow.id, "place", parent=genus.id)
    open_desk(page, "Ana", "keys")
    first = shown(page)
    for chord in ("Control+u", "Alt+u", "Meta+u"):
        page.keyboard.press(chord)
    page.keyboard.press("ArrowRight")
    expect(status(page)).to_contain_text("Skipped. 5 left.")
    assert shown(page) != first

    page.keyboard.press("u")
    expect(status(page)).to_contain_text("Set aside as unsure. 4 left.")
    page.keyboard.press("x")
    expect(status(page)).to_contain_text("not an organism. 3 left.")
    page.keyboard.press("n")
    page.keyboard.type("acer")
    expect(page.locator("#rv-names li")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.locator("#rv-names [aria-selected=true]")).to_contain_text("Acer campestre")
    page.keyboard.press("Enter")
    expect(status(page)).to_contain_text("Verified as Acer campestre. 2 left.")

    page.keyboard.press("n")
    page.keyboard.press("Escape")
    expect(page.locator(".rv-form")).to_be_hidden()
    page.locator(".rv-accept", has_text="Salix alba").focus()  # the candidate whose genus is meant
    page.keyboard.press("g")
    expect(status(page)).to_contain_text("Verified as Salix. Nothing else waits.")
    page.keyboard.press("ArrowRight")  # what was skipped
    assert shown(page) == first
    page.locator(".rv-accept", has_text="Quercus robur").focus()
    page.keyboard.press("g")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Quercus")
    page.keyboard.press("Enter")
    expect(status(page)).to_contain_text("Verified as Quercus. All done.")
    assert client.taxa("Quercus").taxa[-1].rank == "genus"
    for _ in range(5):
        expect(page.locator("[data-do=undo]:visible")).to_have_attribute("aria-disabled", "false")
        before = status(page).inner_text()
        page.keyboard.press("z")
        expect(status(page)).not_to_have_text(before)
    expect(page.locator(".rv-count")).to_have_text("5 left")
    page.get_by_role("tab", name="Read").click()
    page.keyboard.press("x")
    assert len(client.observations("keys", "needs_review").observations) == 5
    assert page.complaints == []


def test_buttons_do_what_keys_do(page, ask):
    ask("buttons", [0, 1])
    open_desk(page, "Ana", "buttons")
    shown(page)
    for name in ("N New name", "G Genus", "U Unsure", "X Not an organism", "Z Undo", "→ Next"):
        expect(page.locator(".rv-work .rv-button", has_text=name)).to_be_visible()
    page.locator(".rv-accept").first.click()
    expect(status(page)).to_contain_text("Verified as")
    page.get_by_role("button", name="Unsure").click()
    expect(status(page)).to_contain_text("Set aside as unsure. All done.")
    page.locator("[data-do=undo]:visible").click()
    expect(status(page)).to_contain_text("taken back. 1 left.")


def test_two_reviewers_never_see_the_same(page, chromium, page_service, ask):
    ask("shared", [0, 1])
    open_desk(page, "Ana", "shared")
    other = chromium.new_context().new_page()
    other.complaints = []
    other.goto(page_service.url)
    open_desk(other, "Ben", "shared")
    assert {shown(page), shown(other)} == {each.id for each in page_service.client.observations("shared").observations}
    page.keyboard.press("1")
    expect(status(page)).to_contain_text("All done.")
    other.context.close()


def test_a_lost_lease_is_told_and_nothing_typed_is_lost(page, page_service, ask):
    ask("leases", [0, 1])
    open_desk(page, "Ana", "leases")
    number = shown(page)
    page.locator(".rv-comment").fill("sure of it")
    with Client(page_service.url, reviewer="Ana") as ana, Client(page_service.url, reviewer="Ben") as ben:
        ana.release(number)
        other = next(each.id for each in ana.observations("leases").observations if each.id != number)
        assert ben.next_observation("leases", skip=[other]).observation.id == number
        page.get_by_role("button", name="Unsure").click()
        expect(page.locator(".rv-error:visible")).to_contain_text(f"hold on observation {number} had run out")
        assert shown(page) == other
        expect(page.locator(".rv-comment")).to_have_value("")
        ben.release(number)
    page.get_by_role("button", name="Unsure").click()
    expect(heading(page)).to_have_text(f"Observation {number}")
    expect(page.locator(".rv-comment")).to_have_value("sure of it")


def test_blind_review_hides_suggestions_and_texts_are_only_texts(page, page_service, ask, kinds, encoded):
    hostile = "<img src=x onerror=alert(1)>"
    ask("blind", [])
    client = page_service.client
    client.submit_observation("blind", [encoded(kinds(0, 9))], notes=hostile, place=hostile, observer=hostile)
    client.set_policy("blind", client.policy("blind").model_copy(update={"blind": True}))
    open_desk(page, "Ana", "blind")
    shown(page)
    expect(page.locator(".rv-caution")).to_contain_text("hidden until you have voted")
    expect(page.locator(".rv-accept")).to_have_count(0)
    expect(page.locator(".rv-facts dd", has_text=hostile)).to_have_count(3)
    page.locator(".rv-comment").press("1")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.locator(".rv-error:visible")).to_contain_text("hidden until you have voted")
    assert page.complaints == []


def test_zoom_by_wheel_click_drag_and_keys(page, ask):
    ask("zoom", [0], pictures=2)
    open_desk(page, "Ana", "zoom")
    shown(page)
    picture, frame = page.locator(".rv-picture"), page.locator(".rv-frame").bounding_box()

    def scale():
        return picture.evaluate("each => new DOMMatrix(getComputedStyle(each).transform).a")

    corner = frame["x"] + 0.25 * frame["width"], frame["y"] + 0.25 * frame["height"]
    page.mouse.click(*corner)
    assert scale() == 2
    moved = picture.bounding_box()
    assert moved["x"] == pytest.approx(corner[0] - 0.5 * frame["width"], abs=1)  # the point stays where it was
    page.mouse.down()
    page.mouse.move(corner[0] + 30, corner[1] + 20, steps=4)
    page.mouse.up()
    assert scale() == 2
    assert picture.bounding_box()["x"] > moved["x"] + 15
    page.mouse.wheel(0, -300)
    page.wait_for_function("() => new DOMMatrix(document.querySelector('.rv-picture').style.transform).a > 2")
    page.keyboard.press("0")
    assert scale() == 1
    page.keyboard.press("+")
    assert scale() == pytest.approx(1.5)
    page.keyboard.press("Shift+ArrowRight")
    assert picture.bounding_box()["x"] < frame["x"] - 0.3 * frame["width"]
    page.keyboard.press("-")
    assert scale() == 1
    page.get_by_role("button", name="Picture 2, leaf").click()
    expect(page.locator(".rv-picture img")).to_have_attribute("alt", re.compile("picture 2 of 2, leaf"))
    page.locator(".rv-proofs button").first.click()
    expect(page.locator(".rv-beside img")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".rv-beside")).to_be_hidden()


def test_an_empty_queue_says_what_to_do(page, page_service, ask):
    ask("quiet", [])
    open_desk(page, "Ana", "quiet")
    expect(heading(page)).to_have_text("Nothing to verify yet")
    page.get_by_role("button", name="Open Identify").click()
    expect(page.locator("#identify-pictures")).to_be_visible()
    page.get_by_role("tab", name="Verify").click()
    page.get_by_role("button", name="Open Find similar").click()
    expect(page.locator("#query-picture")).to_be_visible()
    page.get_by_role("tab", name="Verify").click()
    page.get_by_role("button", name="Use sample pictures").click()
    expect(heading(page)).to_contain_text("Observation", timeout=PATIENCE)
    expect(page.locator(".rv-count")).to_have_text("2 left")
    assert page.complaints == []


def test_a_sample_is_identified_and_too_many_pictures_are_not(page, page_service, ask, kinds, tmp_path):
    ask("samples", [])
    reload(page)
    page.get_by_role("tab", name="Identify").click()
    page.get_by_role("button", name="Try dahlia").click()
    expect(page.locator("#identify-result h2")).to_be_visible(timeout=PATIENCE)
    expect(page.locator("#send")).to_be_visible()
    for number in range(6):
        kinds(0, number).save(tmp_path / f"{number}.png")
    reload(page)
    page.get_by_role("tab", name="Identify").click()
    page.locator("#identify-pictures input[type=file]").set_input_files([tmp_path / f"{n}.png" for n in range(6)])
    expect(page.locator("#identify-result")).to_contain_text("At most 5 pictures", timeout=PATIENCE)
    expect(page.locator("#send")).to_be_hidden()


def test_a_key_signs_in_and_out(chromium, run_service, kinds, encoded, tmp_path):
    with run_service(tmp_path, ui=True) as service:
        service.client.create_collection("keyed")
        service.client.submit_observation("keyed", [encoded(kinds(0, 0))])
        command = [sys.executable, "-m", "readleaf", "keys", "create", "--name", "Ann Lee", "--role", "expert"]
        made = subprocess.run([*command, "--data-dir", tmp_path], capture_output=True, text=True, check=True)
        time.sleep(1.5)  # a running service follows within a second
        page = chromium.new_context().new_page()
        page.goto(service.url)
        page.get_by_label("API key").fill(made.stdout.strip())  # nobody gets to the page without
        page.keyboard.press("Enter")
        page.get_by_role("tab", name="Verify").click()
        expect(page.locator(".rv-who")).to_have_text("Ann Lee")
        expect(page.locator(".rv-picture img")).to_have_js_property("naturalWidth", 90)
        page.locator(".rv-comment").fill("in haste")
        page.get_by_role("button", name="Sign out").click()
        expect(heading(page)).to_have_text("Sign in to verify")
        page.get_by_label("API key").fill("rl_wrong")
        page.keyboard.press("Enter")
        expect(page.locator(".rv-error:visible")).to_contain_text("unknown, expired or revoked")
        page.get_by_label("API key").fill(made.stdout.strip())
        page.keyboard.press("Enter")
        assert shown(page) == 1
        expect(page.locator(".rv-comment")).to_have_value("in haste")
        page.keyboard.press("u")
        expect(status(page)).to_contain_text("Set aside as unsure.")
        page.context.close()


@pytest.mark.parametrize("tab", ["Identify", "Verify"])
def test_a_phone_shows_it_whole(page, ask, tab):
    ask(f"phone {tab}", [0], pictures=3)
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate(ENTER, ["Ana", f"phone {tab}"])
    reload(page)
    choose_tab(page, tab)
    if tab == "Verify":
        shown(page)
        page.keyboard.press("n")
        expect(page.get_by_label("Name", exact=True)).to_be_in_viewport()
        picture, candidates = page.locator(".rv-stage").bounding_box(), page.locator(".rv-candidates").bounding_box()
        assert picture["width"] > 320
        assert candidates["y"] > picture["y"] + picture["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def choose_tab(page, name):
    """By its button, or where there is no room for that, in the menu at the end."""
    expect(page.locator("[role=tab]:visible, .overflow-menu > button:visible").first).to_be_visible()
    page.wait_for_timeout(500)  # Gradio measures the tabs
    if page.get_by_role("tab", name=name).is_visible():
        page.get_by_role("tab", name=name).click()
    else:
        page.locator(".overflow-menu > button").click()
        page.locator(".overflow-dropdown button", has_text=name).click()


def violations(page, place):
    """What axe finds wrong inside of one place, but for a button in a button, which is Gradio's own gallery."""
    found = Axe().run(page, {"include": [[place]]}).response["violations"]
    nodes = [(each["id"], node["html"][:160], node["any"][:1]) for each in found for node in each["nodes"]]
    return [node for node in nodes if node[0] != "nested-interactive" or "Click to Upload" not in node[1]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page, page_service, ask, kinds, tmp_path, theme):
    ask(f"axe {theme}", [0], pictures=2)
    page.goto(f"{page_service.url}/?__theme={theme}")
    page.get_by_role("tab", name="Verify").click()
    expect(heading(page)).to_have_text("Who is verifying?")
    assert violations(page, "#verify-desk") == []
    page.evaluate(ENTER, ["Ana", f"axe {theme}"])
    page.goto(f"{page_service.url}/?__theme={theme}")
    page.get_by_role("tab", name="Verify").click()
    shown(page)
    page.keyboard.press("n")
    page.keyboard.type("quercus")
    expect(page.locator("#rv-names li").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.locator(".rv-history summary").click()
    assert violations(page, "#verify-desk") == []
    page.keyboard.press("u")
    expect(heading(page)).to_have_text("All done")
    assert violations(page, "#verify-desk") == []

    page.get_by_role("tab", name="Identify").click()
    expect(page.locator("#identify-result")).to_contain_text("Drop one to five pictures")
    assert violations(page, IDENTIFY) == []
    kinds(0, 3).save(tmp_path / "oak.png")
    page.locator("#identify-pictures input[type=file]").set_input_files(tmp_path / "oak.png")
    expect(page.locator("#send")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="When, where and by whom").click()
    assert violations(page, IDENTIFY) == []
