import pytest
import torch

from training.data.canvas import Canvas
from training.errors import DataError
from training.mix_recognizers import mix_recognizers
from training.models.provenance import Provenance
from training.models.recognizer import Recognizer, RecognizerShape, load_recognizer, save_recognizer

SHAPE = RecognizerShape(features="vgg", feature_channels=32, symbols="ab", canvas=Canvas(32, 100, channels=1))


def saved(file, seed, shape=SHAPE):
    torch.manual_seed(seed)
    model = Recognizer(shape)
    model.provenance = Provenance((f"data {seed}",), ("ctc",))
    save_recognizer(model, file)
    return model


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_weights_lie_between(tmp_path, share):
    start, trained = saved(tmp_path / "a.pt", 0), saved(tmp_path / "b.pt", 1)
    mix_recognizers(str(tmp_path / "a.pt"), str(tmp_path / "b.pt"), share, tmp_path / "c.pt")
    mixed = load_recognizer(str(tmp_path / "c.pt"))
    assert mixed.provenance == Provenance(trained.provenance.data, ("ctc", "mixed"))
    for name, value in mixed.state_dict().items():
        if value.is_floating_point():
            expected = (1 - share) * start.state_dict()[name] + share * trained.state_dict()[name]
            torch.testing.assert_close(value, expected)


def test_a_share_is_a_share(tmp_path):
    saved(tmp_path / "a.pt", 0)
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(DataError, match="share must be between 0 and 1"):
            mix_recognizers(str(tmp_path / "a.pt"), str(tmp_path / "a.pt"), share, tmp_path / "c.pt")


def test_other_shapes_cannot_be_mixed(tmp_path):
    saved(tmp_path / "a.pt", 0)
    saved(
        tmp_path / "b.pt", 1, RecognizerShape(features="vgg", feature_channels=32, symbols="abc", canvas=SHAPE.canvas)
    )
    with pytest.raises(DataError, match="they must be equal"):
        mix_recognizers(str(tmp_path / "a.pt"), str(tmp_path / "b.pt"), 0.5, tmp_path / "c.pt")
    assert not (tmp_path / "c.pt").exists()
