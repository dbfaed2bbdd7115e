import pytest
import torch

from training.data.pixels import normalised
from training.data.scene_feed import SceneFeed
from training.data.scenes import read_scenes
from training.models.dense_detector import DetectorShape, published_detector
from training.models.detectors import load_dense_detector, save_detector
from training.seen_views import look


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setattr("training.kept_files.KEPT", tmp_path / "prepared")
    torch.manual_seed(0)
    save_detector(published_detector(DetectorShape(hidden=8)), tmp_path / "best.pt")
    return str(tmp_path / "best.pt")


@pytest.fixture
def feed(scene_folder):
    return SceneFeed(read_scenes(scene_folder), None, batch=2, size=64, synthetic=0.0, seed=7)


def test_what_the_stages_see_is_what_the_network_goes_on_with(weights, feed):
    views = look(weights, lambda: feed, 2, "a")
    sizes = [tuple(level.shape) for level in views.levels]
    assert sizes == [(4, 48, 16, 16), (4, 96, 8, 8), (4, 192, 4, 4), (4, 384, 2, 2)]
    assert all(level.dtype == torch.float16 and not level.is_inference() for level in views.levels)
    batch, model = feed.draw(1), load_dense_detector(weights)
    with torch.inference_mode():
        expected = model(normalised(torch.from_numpy(batch.pixels)))
        joined = model.head(model.backbone.join([level[2:].float() for level in views.levels]))
    torch.testing.assert_close(joined, expected, atol=0.02, rtol=0.02)  # kept in half precision
    for own, theirs in zip(views.truths[2:], batch.truths, strict=True):
        torch.testing.assert_close(own.boxes, theirs.boxes)
        assert torch.equal(own.ignored, theirs.ignored)


def test_views_are_drawn_with_their_words(weights, feed):
    views = look(weights, lambda: feed, 2, "a")
    levels, truths = views.draw(torch.Generator().manual_seed(0), 5)
    assert [len(level) for level in levels] == [5] * 4
    assert all(level.dtype == torch.float32 for level in levels)
    for place, truth in enumerate(truths):
        number = next(number for number, known in enumerate(views.truths) if known is truth)
        assert torch.equal(levels[0][place], views.levels[0][number].float())


def test_views_are_looked_at_once(weights, feed, tmp_path):
    first = look(weights, lambda: feed, 1, ["a", 1])
    again = look(weights, lambda: pytest.fail("they are known"), 1, ["a", 1])
    for one, other in zip(first.levels, again.levels, strict=True):
        assert torch.equal(one, other)
    model = load_dense_detector(weights)
    model.backbone.stem.last.bias.data += 1
    save_detector(model, tmp_path / "other.pt")
    for changed in ((weights, 2, ["a", 1]), (weights, 1, ["b", 1]), (str(tmp_path / "other.pt"), 1, ["a", 1])):
        asked = []

        def counted(asked=asked):
            asked.append(1)
            return feed

        look(changed[0], counted, *changed[1:])
        assert asked == [1]
