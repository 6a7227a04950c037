"""Right answers of the stem attention, in other words."""

import math
from itertools import permutations

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from coursekit.attention import attention, causal_mask


def attention_by_einsum(query, key, value, temperature):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores / temperature, -1)
    return torch.einsum("bhqk,bhkv->bhqv", weights, value)


def attention_of_torch(query, key, value, temperature):
    scale = query.shape[-1] ** -0.5 / temperature
    return scaled_dot_product_attention(query, key, value, scale=scale)


def attention_by_loops(query, key, value, temperature):
    output = torch.zeros(*query.shape[:-1], value.shape[-1])
    for b, h, q in np.ndindex(*query.shape[:-1]):
        dots = [float(query[b, h, q] @ k) for k in key[b, h]]
        shares = [math.exp(d / math.sqrt(query.shape[-1]) / temperature) for d in dots]
        for share, row in zip(shares, value[b, h], strict=True):
            output[b, h, q] += share / sum(shares) * row
    return output


def attention_in_place(query, key, value, temperature):
    query.div_(query.shape[-1] ** 0.5 * temperature)
    return (query @ key.mT).softmax(-1) @ value


def attention_by_numpy(query, key, value, temperature):
    query, key, value = query.numpy(), key.numpy(), value.numpy()
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]) / temperature
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ value


def attention_with_all_steps(query, key, value, temperature):
    return attention(query, key, value, scale=query.shape[-1] ** -0.5 / temperature)


def causal_by_comparison(queries, keys, window):
    near = torch.tensor(True) if window is None else queries[:, None] < keys + window
    return (queries[:, None] >= keys[None, :]) & near


def causal_by_loops(queries, keys, window):
    reach = 10**6 if window is None else window
    return torch.tensor([[bool(0 <= q - k < reach) for k in keys] for q in queries])


def causal_by_numpy(queries, keys, window):
    offset = np.subtract.outer(queries.numpy(), keys.numpy())
    return (offset >= 0) & (offset < (np.inf if window is None else window))


def causal_in_lists(queries, keys, window):
    allowed = causal_mask(queries, keys)
    if window is not None:
        allowed &= ~causal_mask(queries - window, keys)
    return allowed.tolist()


def split_by_reshape(x, num_heads, layout):
    batch, length, d_model = x.shape
    if layout == "turns":
        x = x.reshape(batch, length, -1, num_heads)
        return x.permute(0, 3, 1, 2).contiguous()
    return x.view(batch, length, num_heads, -1).permute(0, 2, 1, 3)


def split_by_slices(x, num_heads, layout):
    width = x.shape[-1] // num_heads
    cuts = [slice(h * width, (h + 1) * width) for h in range(num_heads)]
    if layout == "turns":
        cuts = [slice(h, None, num_heads) for h in range(num_heads)]
    return torch.stack([x[..., cut] for cut in cuts], dim=1)


def split_by_numpy(x, num_heads, layout):
    batch, length, d_model = x.shape
    result = np.empty((batch, num_heads, length, d_model // num_heads))
    for place, value in np.ndenumerate(x.numpy()):
        b, p, f = place
        head, feature = divmod(f, d_model // num_heads)
        if layout == "turns":
            feature, head = divmod(f, num_heads)
        result[b, head, p, feature] = value
    return result


def positions_by_loops(mask, start):
    rows = []
    for row in mask.tolist():
        count, places = start, []
        for real in row:
            places.append(count if real else 0)
            count += real
        rows.append(places)
    return rows


def positions_by_numpy(mask, start):
    mask = mask.numpy()
    return np.where(mask, np.cumsum(mask, axis=1) - 1 + start, 0)


def positions_from_the_first(mask, start):
    places = torch.arange(mask.shape[1]) - mask.int().argmax(-1, keepdim=True)
    return (places + start) * mask


def outputs_by_trying(length, place):
    seen = set()
    for first in permutations(range(length), place + 1):
        seen.add((first[-1], frozenset(first[:-1])))
    return len(seen)


def outputs_by_formula(length, place):
    return (
        math.factorial(length)
        / math.factorial(place)
        / math.factorial(length - place - 1)
    )


def outputs_as_a_function(length, place):
    return lambda: torch.tensor([length * math.comb(length - 1, place)])


RIGHT = {
    "attention": (
        attention_by_einsum,
        attention_of_torch,
        attention_by_loops,
        attention_in_place,
        attention_by_numpy,
        attention_with_all_steps,
    ),
    "causal_mask": (
        causal_by_comparison,
        causal_by_loops,
        causal_by_numpy,
        causal_in_lists,
    ),
    "split_heads": (split_by_reshape, split_by_slices, split_by_numpy),
    "positions_from_mask": (
        positions_by_loops,
        positions_by_numpy,
        positions_from_the_first,
    ),
    "different_outputs": (
        outputs_by_trying,
        outputs_by_formula,
        outputs_as_a_function,
    ),
}
