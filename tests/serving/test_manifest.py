import json
import re
import shutil

import pytest

from serving.errors import ManifestInvalid
from serving.manifest import read_manifest
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default / "embedder"


@pytest.fixture
def folder(tmp_path):
    """A copy of the shipped manifest, and a way to change it."""
    target = tmp_path / "embedder"
    target.mkdir()
    shutil.copy(SHIPPED / "manifest.json", target)
    return target


def edit(folder, **changes):
    file = folder / "manifest.json"
    content = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))


def test_round_trip(folder):
    manifest = read_manifest(folder)
    manifest.write(folder)
    assert read_manifest(folder) == manifest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": ...}, "sha256: Field required"),
        ({"colour": "green"}, "colour: Extra inputs"),
        ({"version": 0}, "version: "),
        ({"sha256": "abc"}, "sha256: "),
        ({"dim": 7}, "outputs[0].shape is [-1, 512], but dim is 7"),
        ({"preprocessing": {"width": 10, "height": 10}}, "preprocessing makes [-1, 10, 10, 3]"),
        ({"task": "fly"}, "task: "),
        ({"name": "other"}, "describes 'other', but lies in the folder 'embedder'"),
    ],
)
def test_what_does_not_fit_is_named(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises(ManifestInvalid, match=re.escape(message)):
        read_manifest(folder)


def test_missing_and_broken_files(folder):
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ManifestInvalid, match="the file: Invalid JSON"):
        read_manifest(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(ManifestInvalid, match="cannot be read"):
        read_manifest(folder)
