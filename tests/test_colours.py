"""Colours for every eye: three kinds of colour-blindness, simulated and measured."""

import json
import re
from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from coursekit.plots import METHOD_STYLE

ROOT = Path(__file__).resolve().parents[1]
# Machado, Oliveira and Fernandes 2009, "A physiologically-based model for simulation of
# color vision deficiency", table 1, severity 1.0; on linear RGB.
KINDS = {
    "all colours": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# sRGB to CIE XYZ under D65, IEC 61966-2-1.
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
APART = 15  # of CIE 1976; 2.3 is just noticeable side by side


def seen(rgb, kind):
    """Return L*, a*, b* of colours, (…, 3) in 0 … 1, as that kind of eye sees them."""
    rgb = np.asarray(rgb, float)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.asarray(KINDS[kind]).T, 0, 1)
    ratio = linear @ XYZ.T / XYZ.sum(1)
    small = (6 / 29) ** 3
    root = np.where(ratio > small, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = np.moveaxis(root, -1, 0)
    return np.stack((116 * y - 16, 500 * (x - y), 200 * (y - z)), -1)


def distance(one, other, kind):
    return float(np.linalg.norm(seen(one, kind) - seen(other, kind)))


def maps_in_use():
    found = set(
        re.findall(r'"(viridis|RdBu_r)"', (ROOT / "coursekit/plots.py").read_text())
    )
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                source = "".join(cell["source"])
                found |= set(re.findall(r'cmap="(\w+)"|"cmap": "(\w+)"', source))
    return sorted(
        {
            n
            for names in found
            for n in ((names,) if isinstance(names, str) else names)
            if n
        }
    )


MAPS = maps_in_use()


def test_the_simulation_agrees_with_what_is_known_of_eyes():
    red, green, grey = (0.8, 0.2, 0.2), (0.2, 0.55, 0.2), (0.5, 0.5, 0.5)
    assert distance(red, green, "all colours") > 80
    assert distance(red, green, "deuteranopia") < 40
    assert distance((0.7, 0.7, 0.0), (0.72, 0.68, 0.72), "tritanopia") < 25
    for kind in KINDS:  # grey is grey to everybody
        assert np.abs(seen(grey, kind)[1:]).max() < 1
    white = seen((1, 1, 1), "all colours")
    assert np.allclose(white, (100, 0, 0), atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_two_colours_of_methods_are_never_taken_for_one(kind):
    colours = sorted({look["color"] for look in METHOD_STYLE.values()})
    for one, other in combinations(colours, 2):
        assert distance(to_rgb(one), to_rgb(other), kind) > APART, (one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_every_colour_of_a_method_stands_out_from_the_page(kind):
    for name, look in METHOD_STYLE.items():
        assert distance(to_rgb(look["color"]), (1, 1, 1), kind) > 35, name


def test_each_method_has_a_marker_of_its_own_and_no_two_share_colour_and_dash():
    looks = list(METHOD_STYLE.values())
    assert len({look["marker"] for look in looks}) == len(looks)
    assert len({(look["color"], look["linestyle"]) for look in looks}) == len(looks)


def test_the_maps_in_use_are_those_that_were_looked_at():
    assert set(MAPS) <= {"viridis", "RdBu_r", "Greys"}
    assert "RdBu_r" in MAPS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MAPS)
def test_a_map_tells_its_values_apart(name, kind):
    """One way up in lightness, or up to the middle and down again, ends apart."""
    colours = matplotlib.colormaps[name](np.linspace(0, 1, 65))[:, :3]
    light = seen(colours, kind)[:, 0]
    if name == "RdBu_r":
        assert (np.diff(light[:33]) > -0.5).all()
        assert (np.diff(light[32:]) < 0.5).all()
        assert distance(colours[0], colours[-1], kind) > 25
        assert distance(colours[8], colours[-9], kind) > 25
    else:
        steps = np.diff(light)
        assert (steps > -0.5).all() or (steps < 0.5).all()
    for one, other in zip(colours[:-8:8], colours[8::8], strict=True):
        assert distance(one, other, kind) > 3, name
