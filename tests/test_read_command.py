"""`readleaf read`: pictures and words on this machine, without a service."""

import json

import pytest
from PIL import Image, ImageDraw, ImageFont
from typer.testing import CliRunner

import readleaf
from serving.errors import ModelsMissing
from serving.schemas import ReadResponse
from serving.settings import Settings
from serving.store.database import FILE_NAME, open_database
from serving.store.models_in_use import note_versions

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    """Of no service, whatever runs on this machine."""
    monkeypatch.setenv("READLEAF_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def drawn(*lines, size=(400, 240)):
    """Words one below the other, in black on white."""
    picture = Image.new("RGB", size, "white")
    for number, text in enumerate(lines):
        ImageDraw.Draw(picture).text((60, 40 + 70 * number), text, fill="black", font=ImageFont.load_default(40))
    return picture


def crop(text, turn=0):
    """One word that fills a picture."""
    font = ImageFont.load_default(64)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("RGB", (int(right - left) + 30, int(bottom - top) + 30), "white")
    ImageDraw.Draw(picture).text((15 - left, 15 - top), text, fill="black", font=font)
    return picture.rotate(turn, expand=True)


@pytest.fixture(scope="module")
def crops(tmp_path_factory):
    place = tmp_path_factory.mktemp("crops")
    for name, picture in {"sign": crop("Botanic"), "plate": crop("N17-4GU"), "sideways": crop("LIBRARY", 90)}.items():
        picture.save(place / f"{name}.png")
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two pictures, one of them deeper, and a file that is none."""
    place = tmp_path_factory.mktemp("pictures")
    drawn("EXIT", "LEAF").save(place / "a.png")
    (place / "deeper").mkdir()
    drawn("OPEN").save(place / "deeper/b.jpg", quality=95)
    (place / "notes.txt").write_text("no picture")
    return place


def run(*words):
    return CliRunner().invoke(readleaf.app, ["read", *map(str, words)])


def refused(answer, *words):
    """It ended with a usage error that says why."""
    assert answer.exit_code == 2, answer.output
    said = " ".join(answer.stderr.replace("│", " ").split())
    for word in words:
        assert word in said


def test_the_text_of_a_picture(folder):
    plain, as_text = run(folder / "a.png"), run("--text", folder / "a.png")
    assert plain.exit_code == as_text.exit_code == 0, plain.output
    assert plain.stdout.split() == ["EXIT", "LEAF"]
    assert plain.stdout.endswith("LEAF\n")
    assert as_text.stdout == plain.stdout


def test_a_blank_picture_has_an_empty_text(tmp_path):
    Image.new("RGB", (50, 50), "white").save(tmp_path / "blank.png")
    answer = run(tmp_path / "blank.png")
    assert (answer.exit_code, answer.stdout.strip()) == (0, "")


def test_a_folder_has_headings(folder):
    answer = run(folder)
    assert answer.exit_code == 0, answer.output
    first, second = answer.stdout.removeprefix("== ").split("\n== ")
    assert first.split() == [str(folder / "a.png"), "EXIT", "LEAF"]
    assert second.split() == [str(folder / "deeper/b.jpg"), "OPEN"]


def test_json_lines(folder):
    answer = run("--json", folder)
    assert answer.exit_code == 0
    entries = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [entry.pop("file") for entry in entries] == [str(folder / "a.png"), str(folder / "deeper/b.jpg")]
    first, second = map(ReadResponse.model_validate, entries)
    assert (first.image.width, first.image.height) == (400, 240)
    assert first.text.split() == ["EXIT", "LEAF"]
    assert second.text == "OPEN"
    assert [model.name for model in second.models] == ["detector", "recognizer"]
    [word] = second.words
    assert word.polygon[0][0] < word.polygon[1][0]


def test_json_is_what_the_service_says(folder, service):
    entry = json.loads(run("--json", folder / "a.png").stdout)
    assert entry.pop("file") == str(folder / "a.png")
    assert ReadResponse.model_validate(entry) == service.client.read(folder / "a.png")


def test_an_overlay_of_one_picture(folder, tmp_path):
    answer = run(folder / "a.png", "--overlay", tmp_path / "seen.png")
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.split() == ["EXIT", "LEAF"]
    with Image.open(tmp_path / "seen.png") as seen, Image.open(folder / "a.png") as original:
        assert seen.format == "PNG"
        assert seen.size == original.size
        assert seen.tobytes() != original.tobytes()


def test_overlays_of_a_folder(folder, tmp_path):
    answer = run("--json", folder, "--overlay", tmp_path / "made/seen")
    assert answer.exit_code == 0, answer.output
    assert sorted(file.name for file in (tmp_path / "made/seen").iterdir()) == ["a.png", "b.png"]


def test_an_overlay_in_a_folder_that_is_there(folder, tmp_path):
    assert run(folder / "a.png", "--overlay", tmp_path).exit_code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_overlays_do_not_overwrite_each_other(folder, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        drawn("EXIT").save(tmp_path / name / "a.png")
    assert run(tmp_path / "one", tmp_path / "two", "--overlay", tmp_path / "seen").exit_code == 0
    assert len(list((tmp_path / "seen").rglob("*.png"))) == 2


@pytest.mark.parametrize("place", ["nowhere/seen.png", "seen.xyz", "notes.txt/seen"])
def test_an_overlay_that_cannot_be_written_is_said(folder, place):
    answer = run(folder / "a.png", "--overlay", folder / place)
    assert answer.exit_code in (1, 2)
    assert answer.exception is None or isinstance(answer.exception, SystemExit)
    assert "seen" in answer.stderr


@pytest.mark.parametrize("options", [[], ["--crops"], ["--json"]])
def test_a_broken_file_does_not_stop_the_others(folder, tmp_path, options):
    (tmp_path / "a.jpg").write_text("no picture")
    (tmp_path / "b.jpg").write_bytes(b"")
    drawn("EXIT", size=(220, 120)).save(tmp_path / "c.png")
    answer = run(*options, tmp_path)
    assert answer.exit_code == 1
    assert "EXIT" in answer.stdout
    assert "a.jpg is not an image that can be read" in answer.stderr
    assert "b.jpg has no bytes" in answer.stderr
    assert "Traceback" not in answer.output


def test_what_does_not_go_together(folder, tmp_path):
    refused(run("--json", "--text", folder), "--json or --text")
    refused(run("--crops", "--overlay", tmp_path / "seen.png", folder), "--overlay", "--crops")
    assert not (tmp_path / "seen.png").exists()
    refused(run(folder / "none.png"), "none.png", "does not exist")


def test_a_repository_without_a_detector(folder, crops, tmp_path, monkeypatch):
    """Crops can be read with a recogniser alone."""
    (tmp_path / "recognizer").symlink_to(SHIPPED / "recognizer")
    monkeypatch.setenv("READLEAF_MODELS_DIR", str(tmp_path))
    answer = run(folder)
    assert answer.exit_code == 1
    assert isinstance(answer.exception, ModelsMissing)
    assert "no model named detector" in str(answer.exception)
    assert "Botanic" in run("--crops", crops / "sign.png").stdout


def test_a_folder_of_crops(crops):
    answer = run("--crops", crops)
    assert answer.exit_code == 0, answer.output
    rows = [line.split("\t") for line in answer.stdout.splitlines()]
    assert {row[0].rpartition("/")[2]: row[1] for row in rows} == {
        "plate.png": "N17-4GU",
        "sideways.png": "LIBRARY",
        "sign.png": "Botanic",
    }
    assert all(0 <= float(row[2]) <= 1 for row in rows)


def test_json_lines_of_crops(crops):
    [line] = run("--crops", "--json", crops / "sideways.png").stdout.splitlines()
    entry = json.loads(line)
    assert (entry["text"], entry["turned"]) == ("LIBRARY", 90)


def test_it_answers_with_the_versions_of_the_service(folder, models, add_version, data_dir, monkeypatch):
    """Those that the data folder remembers; the newest, where no service ever ran."""
    monkeypatch.setenv("READLEAF_MODELS_DIR", str(models))
    assert add_version(models, "recognizer") == 2

    def versions():
        answer = run("--json", folder / "a.png")
        assert answer.exit_code == 0, answer.output
        return {model["name"]: model["version"] for model in json.loads(answer.stdout)["models"]}

    assert versions() == {"detector": 1, "recognizer": 2}
    assert not data_dir.exists()  # to ask makes none
    data_dir.mkdir()
    with open_database(data_dir / FILE_NAME) as database, database.writing() as session:
        note_versions(session, {"recognizer": 1})
    assert versions() == {"detector": 1, "recognizer": 1}
