import json
from pathlib import PurePosixPath

import pytest

from ui.folder import FolderFile, uploaded


@pytest.fixture
def uploads(tmp_path):
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "1.jpg").write_bytes(b"picture")
    (tmp_path / "secret.jpg").write_bytes(b"picture")
    return folder


def test_a_label_is_the_folder_below_the_chosen_one(uploads):
    names = ["plants/oak/1.jpg", "plants/trees/elm/1.jpg", "plants/1.jpg"]
    value = json.dumps([{"path": str(uploads / "1.jpg"), "name": name} for name in names])
    files = uploaded(value, uploads)
    assert [str(file.name) for file in files] == names
    assert [file.label for file in files] == ["oak", "elm", None]


def test_only_uploads_are_taken(uploads):
    paths = [uploads.parent / "secret.jpg", uploads / "../secret.jpg", uploads / "missing.jpg", "/etc/passwd", uploads]
    assert uploaded(json.dumps([{"path": str(path), "name": "a/b.jpg"} for path in paths]), uploads) == []


@pytest.mark.parametrize("value", [None, "", "nothing", "{}", "[1]", '[{"path": 3}]', '[{"path": "x"}]', 5])
def test_what_is_no_list_of_files(uploads, value):
    assert uploaded(value, uploads) == []


def test_a_file_of_the_chosen_folder_has_no_label(tmp_path):
    assert FolderFile(tmp_path, PurePosixPath("1.jpg")).label is None
