"""What a camera does to a whole scene: light, blur, noise, compression. Nothing moves, so boxes stay true."""

import cv2
import numpy as np

from training.data.crop_augment import compressed
from training.data.rendering import Random
from training.data.words import Pixels


def photograph(scene: Pixels, random: Random) -> Pixels:
    """The scene [H, W, 3] as a telephone or a head-mounted camera takes it."""
    chance = random.uniform(size=6)
    if chance[0] < 0.3:
        scene = _lit_from_a_side(scene, random)
    if chance[1] < 0.7:
        scene = _developed(scene, random)
    if chance[2] < 0.15:
        scene = _moved(scene, random)
    elif chance[2] < 0.65:
        scene = _blurred(scene, abs(random.normal(0, 1.0)) + 0.3)
    elif chance[2] < 0.75:
        scene = _coarse(scene, random)
    if chance[3] < 0.5:
        scene = _noisy(scene, random)
    if chance[4] < 0.15:
        scene = _sharpened(scene, random)
    if chance[5] < 0.5:
        scene = compressed(scene, random, 30, 92)
    return scene


def _lit_from_a_side(scene: Pixels, random: Random) -> Pixels:
    """Brighter here, darker there, as near windows and lamps."""
    height, width = scene.shape[:2]
    lamps = np.clip(random.normal(0.9, 0.3, size=(3, 3)), 0.3, 1.6).astype(np.float32)
    light = cv2.resize(np.rint(lamps * 128).astype(np.uint8), (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.multiply(scene, cv2.merge([light] * 3), scale=1 / 128), dtype=np.uint8)


def _developed(scene: Pixels, random: Random) -> Pixels:
    """Exposure, contrast and white balance: one table a channel."""
    levels = np.arange(256) / 255
    gamma, contrast, light = np.exp(random.normal(0.1, 0.35)), np.exp(random.normal(-0.1, 0.2)), random.normal(0, 0.05)
    curve = (levels**gamma - 0.5) * contrast + 0.5 + light
    tinted = curve[:, None] * (1 + random.normal(0, 0.07, size=3))
    return np.asarray(cv2.LUT(scene, np.clip(tinted * 255, 0, 255).astype(np.uint8)[None]), dtype=np.uint8)


def _blurred(scene: Pixels, reach: float) -> Pixels:
    return np.asarray(cv2.GaussianBlur(scene, (0, 0), reach), dtype=np.uint8)


def _moved(scene: Pixels, random: Random) -> Pixels:
    """The shutter was open for a while."""
    length = 2 * int(random.integers(1, 5)) + 1
    kernel = np.zeros((length, length), dtype=np.float32)
    middle, angle = length // 2, random.uniform(0, np.pi)
    across, down = (int(np.rint(middle * share)) for share in (np.cos(angle), np.sin(angle)))
    cv2.line(kernel, (middle - across, middle - down), (middle + across, middle + down), (1.0,))
    return np.asarray(cv2.filter2D(scene, -1, kernel / kernel.sum()), dtype=np.uint8)


def _coarse(scene: Pixels, random: Random) -> Pixels:
    """Enlarged from fewer pixels."""
    height, width = scene.shape[:2]
    share = random.uniform(0.45, 0.85)
    small = cv2.resize(scene, (max(1, int(width * share)), max(1, int(height * share))), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


def _noisy(scene: Pixels, random: Random) -> Pixels:
    """Grains of a pixel, or of a few as after a camera's own smoothing. Bytes are drawn far faster than normals."""
    grain = np.frombuffer(random.bytes(scene.size), dtype=np.uint8).reshape(scene.shape)
    strength = random.uniform(0.03, 0.25)
    if random.uniform() < 0.5:
        grain, strength = np.asarray(cv2.blur(grain, (3, 3)), dtype=np.uint8), 2 * strength
    return np.asarray(cv2.addWeighted(scene, 1, grain, strength, -127.5 * strength), dtype=np.uint8)


def _sharpened(scene: Pixels, random: Random) -> Pixels:
    """Telephones do, with a bright seam beside dark edges."""
    strength = random.uniform(0.3, 1.2)
    soft = cv2.GaussianBlur(scene, (0, 0), random.uniform(0.8, 2))
    return np.asarray(cv2.addWeighted(scene, 1 + strength, soft, -strength, 0), dtype=np.uint8)
