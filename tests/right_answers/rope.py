"""Right answers of the stem rope, in other words."""

import math

import torch

from coursekit.sinusoidal import pair_frequencies


def rope_by_complex_numbers(x, positions, base):
    angles = torch.outer(positions.double(), pair_frequencies(x.shape[-1], base))
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


def rope_by_loops(x, positions, base):
    result, dim = x.clone(), x.shape[-1]
    for row, position in enumerate(positions.tolist()):
        for pair in range(dim // 2):
            angle = position * base ** (-2 * pair / dim)
            a, b = x[row, 2 * pair].item(), x[row, 2 * pair + 1].item()
            result[row, 2 * pair] = a * math.cos(angle) - b * math.sin(angle)
            result[row, 2 * pair + 1] = a * math.sin(angle) + b * math.cos(angle)
    return result


def rope_by_matrices(x, positions, base):
    rows = []
    for row, position in zip(x, positions, strict=True):
        angles = (position * pair_frequencies(x.shape[-1], base)).float()
        turns = [
            torch.stack(
                (torch.stack((a.cos(), -a.sin())), torch.stack((a.sin(), a.cos())))
            )
            for a in angles
        ]
        rows.append(torch.block_diag(*turns) @ row)
    return torch.stack(rows)


RIGHT = {"apply_rope": (rope_by_complex_numbers, rope_by_loops, rope_by_matrices)}
