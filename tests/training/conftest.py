"""What tests of the detector's training share: small photographs with words in them."""

import cv2
import numpy as np
import pytest

HEADER = "file\tx1\ty1\tx2\ty2\tx3\ty3\tx4\ty4\ttext\tset"
# Words of each photograph: text, left, top, and quarter turns.
PHOTOGRAPHS = {
    "a": ("train", [("leaf", 10, 8, 0), ("oak", 70, 40, 0), ("ash", 14, 64, 0)]),
    "b": ("train", [("moss", 30, 10, 2), ("fern", 66, 60, 0)]),
    "c": ("val", [("rose", 24, 12, 0), ("ivy", 40, 60, 2)]),
}
WIDTH, HEIGHT = 44, 18  # of a word


@pytest.fixture(scope="session")
def scene_folder(tmp_path_factory):
    """Two photographs of 128 × 96 pixels to train on, one to validate; all have a word that nobody cares for."""
    folder = tmp_path_factory.mktemp("scenes")
    rows = [HEADER]
    for name, (set_name, words) in PHOTOGRAPHS.items():
        pixels = np.full((96, 128, 3), 225, dtype=np.uint8)
        for text, left, top, turns in words:
            word = np.full((HEIGHT, WIDTH, 3), 225, dtype=np.uint8)
            cv2.putText(word, text, (2, 14), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (60, 20, 10), 2, cv2.LINE_AA)
            pixels[top : top + HEIGHT, left : left + WIDTH] = np.rot90(word, turns)
            right, bottom = left + WIDTH, top + HEIGHT
            corners = np.roll([(left, top), (right, top), (right, bottom), (left, bottom)], turns, axis=0)
            numbers = "\t".join(str(number) for number in corners.flatten())
            rows.append(f"{name}.png\t{numbers}\t{text}\t{set_name}")
        rows.append(f"{name}.png\t2\t88\t30\t88\t30\t94\t2\t94\t###\t{set_name}")
        cv2.imwrite(str(folder / f"{name}.png"), pixels)
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")
    return folder
