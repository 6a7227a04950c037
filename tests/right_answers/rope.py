"""Right answers of the stem rope, in other words."""

import cmath
import math

import numpy as np
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


def turned_by_numpy(x, positions, base, sense=1, halves=False):
    x, width = x.double().numpy(), x.shape[-1]
    turns = np.exp(
        1j
        * sense
        * np.outer(positions.numpy(), base ** (-np.arange(0, width, 2) / width))
    )
    if halves:
        pairs = (x[:, : width // 2] + 1j * x[:, width // 2 :]) * turns
        return np.concatenate((pairs.real, pairs.imag), axis=1)
    pairs = (x[:, 0::2] + 1j * x[:, 1::2]) * turns
    return np.stack((pairs.real, pairs.imag), axis=-1).reshape(x.shape)


def scores_by_numpy(query, key, query_positions, key_positions, base):
    query = turned_by_numpy(query, query_positions, base)
    key = turned_by_numpy(key, key_positions, base)
    return query @ key.T / np.sqrt(query.shape[1])


def scores_clockwise(query, key, query_positions, key_positions, base):
    query = turned_by_numpy(query, query_positions, base, sense=-1)
    key = turned_by_numpy(key, key_positions, base, sense=-1)
    return query @ key.T / np.sqrt(query.shape[1])


def scores_of_halves_clockwise(query, key, query_positions, key_positions, base):
    query = turned_by_numpy(query, query_positions, base, sense=-1, halves=True)
    key = turned_by_numpy(key, key_positions, base, sense=-1, halves=True)
    return query @ key.T / np.sqrt(query.shape[1])


def rotate_half(x):
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-second, first), dim=-1)


def scores_as_llama(query, key, query_positions, key_positions, base):
    def turn(x, positions):
        inverse = 1.0 / base ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
        angles = torch.outer(positions.float(), inverse)
        both = torch.cat((angles, angles), dim=-1)
        return x * both.cos() + rotate_half(x) * both.sin()

    turned = turn(query, query_positions), turn(key, key_positions)
    return turned[0] @ turned[1].T / math.sqrt(query.shape[-1])


def scores_by_offset(query, key, query_positions, key_positions, base):
    scores, width = torch.zeros(len(query), len(key)), query.shape[-1]
    for i, j in np.ndindex(*scores.shape):
        offset = int(key_positions[j] - query_positions[i])
        for pair in range(0, width, 2):
            (a, b), (c, d) = (x[pair : pair + 2].tolist() for x in (query[i], key[j]))
            turned = complex(c, d) * cmath.exp(1j * offset * base ** (-pair / width))
            scores[i, j] += (complex(a, -b) * turned).real
    return scores / width**0.5


def scores_key_turned_alone(query, key, query_positions, key_positions, base):
    offsets = (key_positions[None] - query_positions[:, None]).double()
    angles = offsets[..., None] * pair_frequencies(query.shape[-1], base)
    even, odd = key[:, 0::2], key[:, 1::2]
    first = even * angles.cos() - odd * angles.sin()
    second = even * angles.sin() + odd * angles.cos()
    even, odd = query[:, None, 0::2], query[:, None, 1::2]
    return (even * first + odd * second).sum(-1) / query.shape[-1] ** 0.5


def weight_by_view(weight, num_heads, to):
    cut = (2, -1) if to == "adjacent" else (-1, 2)
    rows = weight.unflatten(0, (num_heads, -1)).unflatten(1, cut)
    return rows.transpose(1, 2).reshape(weight.shape)


def weight_by_loops(weight, num_heads, to):
    result, width = torch.empty_like(weight), len(weight) // num_heads
    for row in range(len(weight)):
        head, feature = divmod(row, width)
        part, pair = divmod(feature, width // 2)
        here, there = head * width + 2 * pair + part, row
        if to == "halves":
            here, there = there, here
        result[here] = weight[there]
    return result


def weight_in_place(weight, num_heads, to):
    width = len(weight) // num_heads
    for head in range(num_heads):
        rows = weight[head * width : (head + 1) * width]
        before = rows.clone()
        if to == "adjacent":
            rows[0::2], rows[1::2] = before[: width // 2], before[width // 2 :]
        else:
            rows[: width // 2], rows[width // 2 :] = before[0::2], before[1::2]
    return weight


def weight_by_a_permutation_matrix(weight, num_heads, to):
    width = len(weight) // num_heads
    one = np.zeros((width, width))
    for feature in range(width):
        one[feature, feature // 2 + feature % 2 * width // 2] = 1
    move = np.kron(np.eye(num_heads), one if to == "adjacent" else one.T)
    return move @ weight.numpy()


def step_by_complex_numbers(query, key, cached, base, share):
    place, turning = cached.shape[1], int(query.shape[-1] * share)
    angles = place * base ** (-torch.arange(0, turning, 2).double() / turning)
    turns = torch.polar(torch.ones_like(angles), angles)

    def turn(x):
        pairs = torch.view_as_complex(x[..., :turning].double().unflatten(-1, (-1, 2)))
        turned = torch.view_as_real(pairs * turns).flatten(-2)
        return torch.cat((turned, x[..., turning:].double()), dim=-1)

    keys = torch.cat((cached.double(), turn(key)), dim=-2)
    return torch.einsum("hqd,hkd->hqk", turn(query), keys) / math.sqrt(key.shape[-1])


def step_without_turning_the_key(query, key, cached, base, share):
    own = (query * key).sum(-1, keepdim=True)  # the two turn alike
    place, turning = cached.shape[1], int(query.shape[-1] * share)
    angles = place * pair_frequencies(turning, base)
    even, odd = query[..., 0:turning:2].clone(), query[..., 1:turning:2].clone()
    query[..., 0:turning:2] = even * angles.cos() - odd * angles.sin()
    query[..., 1:turning:2] = even * angles.sin() + odd * angles.cos()
    scores = torch.cat((query @ cached.mT, own), dim=-1)
    return scores / query.shape[-1] ** 0.5


def step_by_loops(query, key, cached, base, share):
    heads, length, width = cached.shape
    turning, rows = round(width * share), []
    for head in range(heads):
        turned = []
        for row in (query[head, 0].tolist(), key[head, 0].tolist()):
            for pair in range(0, turning, 2):
                turn = cmath.exp(1j * length / base ** (pair / turning))
                both = complex(row[pair], row[pair + 1]) * turn
                row[pair], row[pair + 1] = both.real, both.imag
            turned.append(np.array(row))
        keys = np.vstack((cached[head].numpy(), turned[1]))
        rows.append((keys @ turned[0])[None] / np.sqrt(width))
    return np.stack(rows)


def base_by_formula(head_dim, length):
    return (length / (2 * math.pi)) ** (head_dim / (head_dim - 2))


def base_by_search(head_dim, length):
    low, high = 1.0, 1e9
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        slowest = pair_frequencies(head_dim, middle)[-1]
        low, high = (low, middle) if length * slowest <= math.tau else (middle, high)
    return high


def base_by_logarithms(head_dim, length):
    def answer():
        pair = head_dim / 2 - 1
        logarithm = (math.log(length) - math.log(math.tau)) * head_dim / (2 * pair)
        return np.array([math.ceil(math.exp(logarithm))])

    return answer


RIGHT = {
    "apply_rope": (
        rope_by_complex_numbers,
        rope_by_loops,
        rope_by_matrices,
        turned_by_numpy,
    ),
    "rope_scores": (
        scores_by_numpy,
        scores_clockwise,
        scores_as_llama,
        scores_of_halves_clockwise,
        scores_by_offset,
        scores_key_turned_alone,
    ),
    "convert_weight": (
        weight_by_view,
        weight_by_loops,
        weight_in_place,
        weight_by_a_permutation_matrix,
    ),
    "decode_scores": (
        step_by_complex_numbers,
        step_without_turning_the_key,
        step_by_loops,
    ),
    "smallest_base": (base_by_formula, base_by_search, base_by_logarithms),
}
