"""`readleaf index …` against a running service."""

import zipfile

import pytest
from typer.testing import CliRunner

import readleaf
from training.data.labelled import read_labels


@pytest.fixture
def run(service):
    def call(*arguments):
        return CliRunner().invoke(readleaf.app, ["index", *map(str, arguments), "--url", service.url])

    return call


@pytest.fixture
def folder(tmp_path, photo):
    """Two labels of two pictures, one picture without, and one file that is none."""
    for seed, name in enumerate(["oak/1.jpg", "oak/2.JPG", "willow/1.png", "willow/2.webp", "loose.bmp"]):
        file = tmp_path / "pictures" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        photo(60, 50, seed=seed).save(file)
    (tmp_path / "pictures/oak/notes.txt").write_text("nothing")
    return tmp_path / "pictures"


def test_import_info_search_export(run, folder, tmp_path):
    answer = run("import", folder, "--collection", "from the command")
    assert answer.exit_code == 0, answer.output
    assert "5 added, 0 were there already, 0 refused" in answer.output
    assert (
        "0 added, 5 were there already, 0 refused" in run("import", folder, "--collection", "from the command").output
    )

    lines = [line.split() for line in run("info").output.splitlines()]
    assert ["from", "the", "command", "5", "2", "0"] in lines

    found = run("search", "from the command", folder / "oak/1.jpg", "--k", 1)
    assert found.exit_code == 0
    assert "oak 100%" in found.output
    part = run("search", "from the command", folder / "oak/1.jpg", "--label", "willow", "--region", "0,0,30,30")
    assert part.exit_code == 0
    assert "willow" in part.output
    assert "oak" not in part.output

    assert run("export", "from the command", tmp_path / "out").exit_code == 0
    files = read_labels(tmp_path / "out")
    assert sorted(file.class_name for file in files) == ["oak", "oak", "willow", "willow"]
    assert {file.path.read_bytes() for file in files} == {
        (folder / name).read_bytes() for name in ("oak/1.jpg", "oak/2.JPG", "willow/1.png", "willow/2.webp")
    }
    assert "done: 0 of 0 taken" in run("rebuild", "from the command").output


def test_labels_from_a_table(run, folder, service):
    (folder / "labels.tsv").write_text("file\tclass_name\tset\noak/1.jpg\tQuercus\ttrain\ngone.jpg\tQuercus\ttrain\n")
    answer = run("import", folder, "--collection", "by table")
    assert answer.exit_code == 1
    assert "gone.jpg: No such file" in answer.output
    assert answer.output.rstrip().endswith("1 added, 0 were there already, 1 refused")
    assert [label.label for label in service.client.collection("by table").labels] == ["Quercus"]
    (folder / "labels.tsv").write_text("path\tname\n")
    answer = run("import", folder, "--collection", "by no table")
    assert "no columns file and class_name" in str(answer.exception)
    assert "by no table" not in run("info").output


def test_a_zip_file_and_what_is_wrong_with_it(run, folder, tmp_path):
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(folder / "oak/1.jpg", "oak/1.jpg")
        packed.write(folder / "oak/notes.txt", "oak/notes.txt")
    answer = run("import", archive, "--collection", "zipped")
    assert answer.exit_code == 1
    assert "oak/notes.txt" in answer.output
    assert "1 of 2 taken, 1 refused" in answer.output


def test_a_bad_picture_in_a_folder_is_named(run, folder):
    (folder / "oak/broken.jpg").write_bytes(b"no picture")
    answer = run("import", folder, "--collection", "partly bad")
    assert answer.exit_code == 1
    assert "broken.jpg" in answer.output
    assert "5 added, 0 were there already, 1 refused" in answer.output


def test_no_service_and_no_collection_are_one_sentence(run, folder, capsys, monkeypatch, service):
    for url, words in (("http://127.0.0.1:9", "is Readleaf running?"), (service.url, "there is no collection")):
        arguments = ["readleaf", "index", "search", "nowhere", str(folder / "oak/1.jpg"), "--url", url]
        monkeypatch.setattr("sys.argv", arguments)
        with pytest.raises(SystemExit) as ended:
            readleaf.main()
        assert ended.value.code == 1
        assert words in capsys.readouterr().err
