import numpy as np
import pytest
import torch
from torch import nn

from training.data.labelled import LabelledFile, load_pixels
from training.data.paired_views import FreshViews, KeptViews, ViewSize, keep_views, plain_views

VIEW = ViewSize(16, 0.5)


class Halved(nn.Module):
    """A first half that can be counted: it averages 2 × 2 places."""

    def __init__(self):
        super().__init__()
        self.seen = 0
        self.factor = nn.Parameter(torch.tensor(1.0), requires_grad=False)

    def forward(self, images):
        self.seen += len(images)
        return self.factor * nn.functional.avg_pool2d(images, 2)


@pytest.fixture
def files(tmp_path, photo):
    found = []
    for number in range(7):
        photo(30, 24, seed=number).save(tmp_path / f"{number}.png")
        found.append(LabelledFile(tmp_path / f"{number}.png", f"kind {number % 3}", "made", "train"))
    return found


@pytest.fixture(autouse=True)
def kept_here(tmp_path, monkeypatch):
    monkeypatch.setattr("training.kept_files.KEPT", tmp_path / "prepared")


def feeds(files, seed=0, batch=3):
    labels = [number % 3 for number in range(len(files))]
    kept = keep_views(files, Halved(), VIEW, 4)
    return {
        "fresh": FreshViews(files, labels, Halved(), VIEW, batch, seed),
        "kept": KeptViews(kept, range(len(files)), labels, batch=batch, seed=seed),
    }


def draw(feed, step):
    loaded, labels = feed.load(step)
    return feed.features(loaded), labels


@pytest.mark.parametrize("kind", ["fresh", "kept"])
def test_a_batch_is_two_different_views_of_each_picture(files, kind):
    features, labels = draw(feeds(files)[kind], 0)
    assert features.shape == (6, 3, 8, 8)
    assert labels[:3].tolist() == labels[3:].tolist()
    for first, second in zip(features[:3], features[3:], strict=True):
        assert not torch.equal(first, second)


@pytest.mark.parametrize("kind", ["fresh", "kept"])
def test_seed_and_step_alone_decide(files, kind):
    feed = feeds(files)[kind]
    torch.testing.assert_close(draw(feed, 5), draw(feeds(files)[kind], 5))
    assert not torch.equal(draw(feed, 5)[0], draw(feed, 6)[0])
    assert not torch.equal(draw(feed, 5)[0], draw(feeds(files, seed=1)[kind], 5)[0])


@pytest.mark.parametrize("kind", ["fresh", "kept"])
def test_every_picture_is_seen_once_before_any_twice(files, kind):
    order = feeds(files)[kind].order
    seen = [place for step in range(7) for place in order.of(step)]
    for epoch in range(3):
        assert sorted(seen[7 * epoch : 7 * epoch + 7]) == list(range(7))


@pytest.mark.parametrize("kind", ["fresh", "kept"])
def test_a_batch_is_never_larger_than_the_data(files, kind):
    assert len(draw(feeds(files, batch=100)[kind], 3)[0]) == 14


@pytest.mark.parametrize("kind", ["fresh", "kept"])
def test_passes(files, kind):
    parts = list(feeds(files)[kind].passes(2))
    features, labels = (torch.cat(part) for part in zip(*parts, strict=True))
    assert len(features) == 14
    assert labels.tolist() == [number % 3 for number in range(7)] * 2
    assert not torch.equal(features[:7], features[7:])


def test_views_are_kept_for_the_same_question_only(files):
    early = Halved()
    first = keep_views(files, early, VIEW, 4)
    assert (first.shape, first.dtype) == ((7, 4, 3, 8, 8), np.float16)
    seen = early.seen
    np.testing.assert_array_equal(keep_views(files, early, VIEW, 4), first)
    assert early.seen == seen
    early.factor.data *= 2  # another first half, other features
    np.testing.assert_allclose(keep_views(files, early, VIEW, 4), 2 * first, rtol=2e-3, atol=1e-6)
    assert early.seen > seen


def test_a_picture_that_was_changed_is_looked_at_again(files, photo):
    first = np.array(keep_views(files, Halved(), VIEW, 4))
    photo(30, 24, seed=99).save(files[2].path)
    second = keep_views(files, Halved(), VIEW, 4)
    assert not np.array_equal(second[2], first[2])
    np.testing.assert_array_equal(second[3], first[3])


def test_plain_views_are_what_the_service_shows(files):
    [features] = plain_views(files, nn.Identity(), 16)
    expected = load_pixels(files[2].path, 16, 16) / 127.5 - 1
    np.testing.assert_allclose(features[2].permute(1, 2, 0), expected, atol=1e-6)
