"""Right answers of the stem relative, in other words."""

import math

import numpy as np
import torch
from torch.nn import functional


def index_by_loops(query, key, clip):
    return torch.tensor(
        [
            [max(-clip, min(clip, k - q)) + clip for k in key.tolist()]
            for q in query.tolist()
        ]
    )


def index_by_numpy(query, key, clip):
    offsets = np.subtract.outer(key.numpy(), query.numpy()).T
    return np.clip(offsets + clip, 0, 2 * clip)


def index_by_counting(query, key, clip):
    edges = torch.arange(-clip, clip)
    offsets = key.unsqueeze(0) - query.unsqueeze(1)
    return (offsets.unsqueeze(-1) > edges).sum(-1)


def first_offset(order):
    return -1 if order == "query minus key" else 1


def scores_by_loops(query, table, offsets, order):
    clip, way = len(table) // 2, first_offset(order)
    result = torch.empty(*query.shape[:3], offsets.shape[1])
    for i, row in enumerate(offsets.tolist()):
        for j, offset in enumerate(row):
            a = table[clip + way * max(-clip, min(clip, offset))]
            result[:, :, i, j] = query[:, :, i] @ a / math.sqrt(len(a))
    return result


def scores_by_einsum(query, table, offsets, order):
    clip = len(table) // 2
    rows = table[(first_offset(order) * offsets).clamp(-clip, clip) + clip]
    return torch.einsum("bhqd,qkd->bhqk", query, rows) / query.shape[-1] ** 0.5


def scores_by_one_hot(query, table, offsets, order):
    clip = len(table) // 2
    index = (first_offset(order) * offsets).clamp(-clip, clip) + clip
    chosen = functional.one_hot(index, len(table)).to(query.dtype)
    query /= query.shape[-1] ** 0.5
    return torch.einsum("bhqr,qkr->bhqk", query @ table.T, chosen)


def scores_by_numpy(query, table, offsets, order):
    query, table, offsets = query.numpy(), table.numpy(), offsets.numpy()
    clip = len(table) // 2
    index = np.clip(offsets, -clip, clip) * first_offset(order) + clip
    products = query @ table.T / np.sqrt(query.shape[-1])
    return products[:, :, np.arange(len(index))[:, None], index]


def bucket_by_loops(offsets, num_buckets, max_distance, bidirectional):
    n = num_buckets // 2 if bidirectional else num_buckets
    m = n // 2

    def bucket(offset):
        x = abs(offset) if bidirectional else max(-offset, 0)
        start = n if bidirectional and offset > 0 else 0
        if x < m:
            return start + x
        steps = math.log(x / m) / math.log(max_distance / m) * (n - m)
        return start + min(n - 1, m + math.floor(steps))

    return [[bucket(offset) for offset in row] for row in offsets.tolist()]


def bucket_as_released(offsets, num_buckets, max_distance, bidirectional):
    relative_buckets = 0
    if bidirectional:
        num_buckets //= 2
        relative_buckets += (offsets > 0).to(torch.long) * num_buckets
        offsets = torch.abs(offsets)
    else:
        offsets = -torch.min(offsets, torch.zeros_like(offsets))
    exact = num_buckets // 2
    large = torch.log(offsets.float() / exact) / math.log(max_distance / exact)
    large = exact + (large * (num_buckets - exact)).to(torch.long)
    large = torch.min(large, torch.full_like(large, num_buckets - 1))
    return relative_buckets + torch.where(offsets < exact, offsets, large)


def bucket_by_edges(offsets, num_buckets, max_distance, bidirectional):
    n = num_buckets // 2 if bidirectional else num_buckets
    m = n // 2
    edges = [*range(1, m)]
    edges += [m * (max_distance / m) ** (step / (n - m)) for step in range(n - m)]
    x = -offsets.numpy()
    distance = np.abs(x) if bidirectional else np.maximum(x, 0)
    return np.searchsorted(edges, distance + 1e-6) + (n if bidirectional else 0) * (
        x < 0
    )


def shift_by_loops(x, order):
    heads, queries, columns = x.shape
    keys = columns - queries + 1
    result = torch.empty(heads, queries, keys)
    for i in range(queries):
        for j in range(keys):
            offset = j - (keys - queries + i)
            falling = order == "query minus key"
            column = queries - 1 - offset if falling else offset + keys - 1
            result[:, i, j] = x[:, i, column]
    return result


def shift_by_padding(x, order):
    if order == "query minus key":
        x = x.flip(-1)
    heads, queries, columns = x.shape
    padded = torch.cat((x.new_zeros(heads, queries, 1), x), dim=-1)
    moved = padded.view(heads, columns + 1, queries)[:, 1:].reshape(x.shape)
    return moved[..., : columns - queries + 1]


def shift_by_strides(x, order):
    if order == "query minus key":
        x = x.flip(-1)
    heads, queries, columns = x.contiguous().shape
    size = heads, queries, columns - queries + 1
    return x.as_strided(size, (queries * columns, columns - 1, 1), queries - 1)


def shift_by_slices(x, order):
    queries, columns = x.shape[1:]
    keys = columns - queries + 1
    rows = []
    for i in range(queries):
        if order == "query minus key":
            rows.append(x[:, i, i : i + keys].flip(-1))
        else:
            rows.append(x[:, i, queries - 1 - i : columns - i])
    return torch.stack(rows, dim=1)


def opens_by_formula(num_buckets, max_distance):
    m = num_buckets // 2
    return math.ceil(m * (max_distance / m) ** ((num_buckets - m - 1) / m))


def opens_by_walking(num_buckets, max_distance):
    def answer():
        m, x = num_buckets // 2, num_buckets // 2
        while m + int(math.log(x / m) / math.log(max_distance / m) * m) < 2 * m - 1:
            x += 1
        return x

    return answer


def opens_in_whole_numbers(num_buckets, max_distance):
    m = num_buckets // 2
    return min(x for x in range(m, max_distance) if x**m >= m * max_distance ** (m - 1))


RIGHT = {
    "shaw_index": (index_by_loops, index_by_numpy, index_by_counting),
    "shaw_scores": (
        scores_by_loops,
        scores_by_einsum,
        scores_by_one_hot,
        scores_by_numpy,
    ),
    "t5_bucket": (bucket_by_loops, bucket_as_released, bucket_by_edges),
    "relative_shift": (
        shift_by_loops,
        shift_by_padding,
        shift_by_strides,
        shift_by_slices,
    ),
    "last_bucket_opens": (opens_by_formula, opens_by_walking, opens_in_whole_numbers),
}
