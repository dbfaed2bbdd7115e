"""Random distortions of a word's picture, as cameras, weather and compression make them."""

import cv2
import numpy as np

from training.data.words import Pixels

HIGHEST = 64  # larger crops are shrunk first: nothing finer reaches the network


def distort(crop: Pixels, random: np.random.Generator, strength: float = 1.0) -> Pixels:
    """A crop seen from elsewhere, in another light, through a worse lens; strength 0 changes nothing."""
    if strength == 0:
        return crop
    if crop.shape[0] > HIGHEST:
        width = max(1, round(crop.shape[1] * HIGHEST / crop.shape[0]))
        crop = np.asarray(cv2.resize(crop, (width, HIGHEST), interpolation=cv2.INTER_AREA), dtype=np.uint8)
    chance = random.uniform(size=6) / strength
    if chance[0] < 0.7:
        crop = _seen_from_elsewhere(crop, random, strength)
    if chance[1] < 0.2:
        crop = _coarse(crop, random)
    elif chance[2] < 0.3:
        crop = _blurred(crop, random)
    if chance[3] < 0.6:
        crop = in_another_light(crop, random)
    if chance[4] < 0.25:
        crop = noisy(crop, random)
    if chance[5] < 0.25:
        crop = compressed(crop, random)
    return crop


def _seen_from_elsewhere(crop: Pixels, random: np.random.Generator, strength: float) -> Pixels:
    """Turned a little, sheared, in perspective, cut loosely or tightly."""
    height, width = crop.shape[:2]
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    centre = corners.mean(axis=0)
    angle = np.deg2rad(random.normal(0, 4) * strength)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    shear = np.array([[1, 0], [random.normal(0, 0.12) * strength, 1]])
    size = np.array([width, height]) * np.exp(random.normal(0, [0.1, 0.04]) * strength)
    moved = (corners - centre) @ turn @ shear
    low, high = moved.min(axis=0), moved.max(axis=0)
    moved = (moved - low) / np.maximum(high - low, 1e-6) * size  # a turned word is framed anew, as a detector would
    margin = size[1] * random.normal(0.02, 0.06, size=4) * strength  # left, top, right, bottom; below 0 cuts
    moved += margin[:2] + random.normal(0, 0.04, size=(4, 2)) * strength * size[1]
    out_width, out_height = np.maximum(np.rint(size + margin[:2] + margin[2:]), 8).astype(int)
    transform = cv2.getPerspectiveTransform(corners, moved.astype(np.float32))
    return np.asarray(
        cv2.warpPerspective(
            crop, transform, (int(out_width), int(out_height)), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        ),
        dtype=np.uint8,
    )


def _coarse(crop: Pixels, random: np.random.Generator) -> Pixels:
    """As if photographed from afar."""
    height, width = crop.shape[:2]
    low = int(random.integers(12, 28))
    if low >= height:
        return crop
    small = cv2.resize(crop, (max(4, width * low // height), low), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.uint8)


def _blurred(crop: Pixels, random: np.random.Generator) -> Pixels:
    """Out of focus, or moved while the shutter was open."""
    reach = crop.shape[0] / 48
    if random.uniform() < 0.5:
        return np.asarray(cv2.GaussianBlur(crop, (0, 0), max(0.3, random.uniform(0.3, 1.5) * reach)), dtype=np.uint8)
    length = 2 * int(random.integers(1, 5)) + 1
    kernel = np.zeros((length, length), dtype=np.float32)
    angle = random.uniform(0, np.pi)
    end = np.rint(length // 2 * np.array([np.cos(angle), np.sin(angle)])).astype(int)
    middle = length // 2
    cv2.line(kernel, (middle - end[0], middle - end[1]), (middle + end[0], middle + end[1]), 1.0)
    return np.asarray(cv2.filter2D(crop, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REPLICATE), dtype=np.uint8)


def in_another_light(crop: Pixels, random: np.random.Generator) -> Pixels:
    """Brighter or darker, paler, of another colour, or with light and dark exchanged: one table a channel."""
    levels = np.arange(256) / 255
    gamma, contrast, light = np.exp(random.normal(0, 0.3)), np.exp(random.normal(-0.1, 0.25)), random.normal(0, 0.06)
    curve = (levels**gamma - 0.5) * contrast + 0.5 + light
    tinted = curve[:, None] * (1 + random.normal(0, 0.08, size=3))
    if random.uniform() < 0.15:
        tinted = 1 - tinted
    table = np.clip(tinted * 255, 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(crop, table[None]), dtype=np.uint8)


def noisy(crop: Pixels, random: np.random.Generator) -> Pixels:
    """Taken in the dark."""
    noise = random.normal(0, random.uniform(2, 16), size=crop.shape)
    return np.clip(crop + noise, 0, 255).astype(np.uint8)


def compressed(crop: Pixels, random: np.random.Generator, worst: int = 15, best: int = 80) -> Pixels:
    """Kept as a JPEG of some quality."""
    _, data = cv2.imencode(".jpg", crop, [cv2.IMWRITE_JPEG_QUALITY, int(random.integers(worst, best))])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), dtype=np.uint8)  # BGR to BGR: the order stays
