import re

import numpy as np
import pytest

from serving.client import Client
from ui.compare import WAITING, compare, share_below
from ui.samples import draw_samples


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return {name: str(file) for name, file in draw_samples(tmp_path_factory.mktemp("samples")).items()}


def similarity(html):
    return float(re.search(r"<b>([\d.]+)</b>", html)[1])


def test_two_oaks_are_more_alike_than_an_oak_and_a_willow(service, samples):
    oaks = compare(service.client, samples["oak-1"], samples["oak-2"])
    mixed = compare(service.client, samples["oak-1"], samples["willow"])
    assert similarity(oaks) > similarity(mixed)
    assert "Very alike" in oaks
    assert "<svg" in oaks


def test_a_picture_and_itself(service, samples):
    assert "Practically the same picture" in compare(service.client, samples["willow"], samples["willow"])


def test_one_picture_is_not_enough(service, samples):
    assert compare(service.client, samples["willow"], None) == WAITING
    assert compare(service.client, None, samples["willow"]) == WAITING


def test_a_file_that_is_no_picture_gives_a_sentence(service, samples, tmp_path):
    file = tmp_path / "<b>letter.jpg"
    file.write_text("Dear all")
    html = compare(service.client, samples["willow"], str(file))
    assert 'role="alert"' in html
    assert "Image 2 (&lt;b&gt;letter.jpg) is not an image that can be read" in html


def test_no_service_gives_a_sentence(samples):
    with Client("http://127.0.0.1:9", timeout=2) as client:
        assert "is Readleaf running" in compare(client, samples["willow"], samples["willow"])


@pytest.mark.parametrize(("value", "share"), [(-1, 0), (0.0, 0), (0.495, 49), (0.5, 49), (0.505, 50), (2, 100)])
def test_share_below(value, share):
    assert share_below(value, np.linspace(0, 1, 101).tolist()) == share
