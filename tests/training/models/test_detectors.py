import pytest
import torch

from training.errors import DataError
from training.models.dense_detector import DenseDetector, DetectorShape
from training.models.detectors import load_dense_detector, load_detector, save_detector
from training.models.provenance import Provenance
from training.models.rrpn import Rrpn, RrpnShape

SMALL_RRPN = RrpnShape("resnet18", scales=(2, 4), hidden=16, pooled=8, units=16, candidates=50, proposals=10)


def test_a_checkpoint_is_what_was_saved(tmp_path):
    torch.manual_seed(0)
    model = DenseDetector(DetectorShape(hidden=8, heart=0.25)).eval()
    model.provenance = Provenance(("made: 3 photographs",), ("smooth-L1", "ls_iou"))
    save_detector(model, tmp_path / "new/best.pt")
    for again in (load_detector(str(tmp_path / "new/best.pt")), load_dense_detector(str(tmp_path / "new/best.pt"))):
        assert again.shape == model.shape
        assert again.provenance == model.provenance
        assert not again.training
        images = torch.randn(1, 3, 64, 32)
        torch.testing.assert_close(again(images), model(images))


def test_weights_in_half_precision(tmp_path):
    torch.manual_seed(0)
    model = DenseDetector(DetectorShape(hidden=8)).eval()
    save_detector(model, tmp_path / "best.pt")
    stored = torch.load(tmp_path / "best.pt", weights_only=True)
    stored["weights"] = {name: value.half() for name, value in stored["weights"].items()}
    torch.save(stored, tmp_path / "half.pt")
    half = load_dense_detector(str(tmp_path / "half.pt"))
    assert half.last.weight.dtype == torch.float32
    images = torch.randn(1, 3, 64, 32)
    torch.testing.assert_close(half(images), model(images), atol=0.02, rtol=0.02)


def test_an_rrpn_is_kept_too_but_cannot_be_served(tmp_path):
    torch.manual_seed(0)
    model = Rrpn(SMALL_RRPN).eval()
    model.provenance = Provenance(losses=("smooth-L1",))
    save_detector(model, tmp_path / "best.pt")
    again = load_detector(str(tmp_path / "best.pt"))
    assert isinstance(again, Rrpn)
    assert again.shape == SMALL_RRPN
    assert again.provenance == model.provenance
    images = torch.randn(1, 3, 64, 64)
    for own, theirs in zip(again.find(images)[0], model.find(images)[0], strict=True):
        torch.testing.assert_close(own, theirs)
    with pytest.raises(DataError, match="holds an RRPN; only the dense detector can be served"):
        load_dense_detector(str(tmp_path / "best.pt"))


def test_what_is_no_checkpoint(tmp_path):
    with pytest.raises(DataError, match="there is no checkpoint at"):
        load_detector(str(tmp_path / "none.pt"))
    (tmp_path / "bad.pt").write_bytes(b"no weights")
    described = {"network": "dense", "shape": {"hidden": 8}, "weights": {}, "provenance": {}}
    torch.save(described, tmp_path / "empty.pt")
    torch.save(described | {"shape": {"eyes": 2}}, tmp_path / "other.pt")
    torch.save(described | {"network": "luck"}, tmp_path / "luck.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    for name in ("bad", "empty", "other", "luck", "list"):
        with pytest.raises(DataError, match=f"{name}.pt is not a checkpoint of a detector"):
            load_detector(str(tmp_path / f"{name}.pt"))
