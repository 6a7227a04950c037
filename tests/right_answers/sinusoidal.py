"""Right answers of the stem sinusoidal, in other words."""

import cmath
import math
from functools import cache

import numpy as np
import torch

from coursekit.sinusoidal import pair_frequencies, shift_matrix, sinusoidal_encoding


def frequencies_by_exp(dim, base):
    return torch.exp(-math.log(base) * torch.arange(0, dim, 2) / dim)


def frequencies_in_a_list(dim, base):
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


def frequencies_step_by_step(dim, base):
    result = np.ones(dim // 2)
    for i in range(1, dim // 2):
        result[i] = result[i - 1] / base ** (2 / dim)
    return result


def encoding_by_loops(positions, d_model, base):
    rows = []
    for p in positions.tolist():
        angles = [p / base ** (2 * (i // 2) / d_model) for i in range(d_model)]
        rows.append(
            [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]
        )
    return torch.tensor(rows)


def encoding_by_numpy(positions, d_model, base):
    exponents = np.arange(0, d_model, 2) / d_model
    angles = positions.numpy()[:, None] * np.exp(-np.log(base) * exponents)
    table = np.empty((len(positions), d_model))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def encoding_by_complex_numbers(positions, d_model, base):
    turns = torch.polar(
        torch.ones(len(positions), d_model // 2, dtype=torch.float64),
        torch.outer(positions.double(), pair_frequencies(d_model, base)),
    )
    return torch.stack((turns.imag, turns.real), -1).flatten(1)


def encoding_by_float32(positions, d_model, base):
    angles = positions.unsqueeze(-1) * base ** (-torch.arange(0, d_model, 2) / d_model)
    table = torch.zeros(len(positions), d_model)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


def shift_by_blocks(offset, d_model, base):
    angles = (offset * pair_frequencies(d_model, base)).tolist()
    blocks = [[[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]] for a in angles]
    return torch.block_diag(*map(torch.tensor, blocks))


def shift_by_least_squares(offset, d_model, base):
    row = torch.arange(0, 40_000, 37).double()
    before = sinusoidal_encoding(row, d_model, base)
    after = sinusoidal_encoding(row + offset, d_model, base)
    return torch.linalg.lstsq(before, after).solution.T


def shift_by_loops(offset, d_model, base):
    matrix = np.zeros((d_model, d_model))
    for row in range(d_model):
        turn = cmath.exp(1j * offset * base ** (-2 * (row // 2) / d_model))
        matrix[row, row] = turn.real
        matrix[row, row ^ 1] = -turn.imag if row % 2 else turn.imag
    return matrix


def hands_by_loops(base, d_model, last):
    count = 0
    while 2 * math.pi * base ** (2 * count / d_model) <= last:
        count += 1
    return count


def hands_by_angles(base, d_model, last):
    turns = last * pair_frequencies(d_model, base) / (2 * math.pi)
    return (turns >= 1).sum()


def hands_by_walking(base, d_model, last):
    def answer():
        angles = np.outer(np.arange(last + 1), pair_frequencies(d_model, base).numpy())
        return int((np.unwrap(angles, axis=0)[-1] >= 2 * np.pi).sum())

    return answer


def offset_by_complex_numbers(first, second, base):
    even, odd = (first[:, -2], second[:, -2]), (first[:, -1], second[:, -1])
    turns = [torch.complex(b, a) for a, b in zip(even, odd, strict=True)]
    between = (turns[1] * turns[0].conj()).angle()
    return between / pair_frequencies(first.shape[-1], base)[-1]


@cache
def every_shift(d_model, base):
    return torch.stack([shift_matrix(k, d_model, base) for k in range(-300, 301)])


def offset_by_search(first, second, base):
    found = []
    for a, b in zip(first, second, strict=True):
        misses = (every_shift(len(a), base) @ a - b).norm(dim=-1)
        found.append(int(misses.argmin()) - 300)
    return found


def offset_by_cross_and_dot(first, second, base):
    width = first.shape[-1]
    first, second = first[:, -2:].numpy(), second[:, -2:].numpy()
    sine = second[:, 0] * first[:, 1] - second[:, 1] * first[:, 0]
    cosine = (first * second).sum(-1)
    return np.round(np.arctan2(sine, cosine) * base ** ((width - 2) / width))


RIGHT = {
    "pair_frequencies": (
        frequencies_by_exp,
        frequencies_in_a_list,
        frequencies_step_by_step,
    ),
    "sinusoidal_encoding": (
        encoding_by_loops,
        encoding_by_numpy,
        encoding_by_complex_numbers,
        encoding_by_float32,
    ),
    "shift_matrix": (shift_by_blocks, shift_by_least_squares, shift_by_loops),
    "hands_that_turn": (hands_by_loops, hands_by_angles, hands_by_walking),
    "recover_offset": (
        offset_by_complex_numbers,
        offset_by_search,
        offset_by_cross_and_dot,
    ),
}
