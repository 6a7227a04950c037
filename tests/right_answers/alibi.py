"""Right answers of the stem alibi, in other words."""

import math

import numpy as np
import torch


def slopes_as_the_authors(num_heads, end):
    def power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - math.log2(end))))
        return [start * start**i for i in range(n)]

    if math.log2(num_heads).is_integer():
        return power_of_two(num_heads)
    below = 2 ** math.floor(math.log2(num_heads))
    extra = slopes_as_the_authors(2 * below, end)[0::2][: num_heads - below]
    return power_of_two(below) + extra


def slopes_as_hugging_face(num_heads, end):
    below = 2 ** math.floor(math.log2(num_heads))
    slopes = torch.pow(2 ** (-end / below), torch.arange(1, 1 + below))
    if below != num_heads:
        odd = torch.arange(1, 1 + 2 * (num_heads - below), 2)
        slopes = torch.cat((slopes, torch.pow(2 ** (-end / (2 * below)), odd)))
    return slopes


def slopes_by_loops(num_heads, end):
    below, slopes = 1, np.zeros(num_heads)
    while 2 * below <= num_heads:
        below *= 2
    for head in range(num_heads):
        exponent = (head + 1) / below
        if head >= below:
            exponent = (2 * (head - below) + 1) / (2 * below)
        slopes[head] = 2.0 ** (-end * exponent)
    return slopes


def logits_added(query, key, slopes, query_positions, key_positions, price):
    scores = torch.einsum("hqd,hkd->hqk", query, key) / math.sqrt(query.shape[-1])
    distance = (query_positions[:, None] - key_positions[None, :]).abs()
    return scores + torch.einsum("h,qk->hqk", -price * slopes, distance.float())


def logits_subtracted(query, key, slopes, query_positions, key_positions, price):
    logits = query @ key.mT / query.shape[-1] ** 0.5
    for head, slope in enumerate(slopes):
        logits[head] -= price * slope * (query_positions[:, None] - key_positions)
    return logits


def logits_key_only(query, key, slopes, query_positions, key_positions, price):
    late = key_positions - key_positions[-1]
    row = price * slopes[:, None] * late
    return query @ key.mT / query.shape[-1] ** 0.5 + row[:, None]


def logits_with_a_mask(query, key, slopes, query_positions, key_positions, price):
    offsets = np.subtract.outer(query_positions.numpy(), key_positions.numpy())
    scores = query.numpy() @ key.numpy().swapaxes(1, 2) / np.sqrt(query.shape[-1])
    scores -= price * slopes.numpy()[:, None, None] * offsets
    scores[:, offsets < 0] = -np.inf
    return scores


def logits_in_the_past(query, key, slopes, query_positions, key_positions, price):
    past = (query_positions[:, None] - key_positions).clamp(min=0)
    return (
        query @ key.mT * query.shape[-1] ** -0.5 - price * slopes.view(-1, 1, 1) * past
    )


def logits_by_loops(query, key, slopes, query_positions, key_positions, price):
    result = torch.zeros(*query.shape[:2], key.shape[1])
    for h, i, j in np.ndindex(*result.shape):
        score = float(query[h, i] @ key[h, j]) / math.sqrt(query.shape[-1])
        steps = abs(int(query_positions[i]) - int(key_positions[j]))
        result[h, i, j] = score - price * float(slopes[h]) * steps
    return result


def fold_from_the_last(query, key, slopes, key_positions, price):
    batch, heads, length, width = query.shape
    wide = math.sqrt(width + 1)
    row = torch.zeros(batch, heads, length, width + 1)
    row[..., :width] = query * wide / math.sqrt(width)
    row[..., width] = (price * slopes * wide).view(1, heads, 1)
    late = key_positions - key_positions[-1]
    return row, torch.cat((key, late.float().expand(batch, heads, -1)[..., None]), -1)


def fold_with_a_price_on_the_key(query, key, slopes, key_positions, price):
    wide = query.shape[-1] + 1
    asks = torch.ones_like(query[..., :1])
    steps = (key_positions - key_positions[0]) * price * slopes[:, None]
    answers = (steps * wide**0.5).expand(*key.shape[:2], -1)[..., None]
    query = query * (wide / query.shape[-1]) ** 0.5
    return torch.cat((query, asks), -1), torch.cat((key, answers), -1)


def fold_by_numpy(query, key, slopes, key_positions, price):
    root = np.sqrt(query.shape[-1] + 1)
    query, key = query.numpy() / np.sqrt(query.shape[-1]) * root, key.numpy()
    asks = np.broadcast_to(root * slopes.numpy()[:, None, None], (*query.shape[:3], 1))
    steps = price * (key_positions.numpy() - key_positions.numpy().mean())[:, None]
    answers = np.broadcast_to(steps, (*key.shape[:3], 1))
    return [np.concatenate(pair, axis=-1) for pair in ((query, asks), (key, answers))]


def fold_in_front(query, key, slopes, key_positions, price):
    asks = (price * slopes * query.shape[-1] ** 0.5).view(1, -1, 1, 1)
    asks = asks.expand(*query.shape[:-1], 1)
    answers = (key_positions - 300.0).view(1, 1, -1, 1).expand(*key.shape[:-1], 1)
    query = torch.cat((asks, query), dim=-1)
    query *= math.sqrt(query.shape[-1] / (query.shape[-1] - 1))
    return query, torch.cat((answers, key), dim=-1)


def kerple_by_numpy(scale, rate, query_positions, key_positions, price):
    distance = abs(np.subtract.outer(query_positions.numpy(), key_positions.numpy()))
    grown = np.log1p(np.multiply.outer(rate.numpy(), distance))
    return -price * scale.numpy()[:, None, None] * grown


def kerple_by_loops(scale, rate, query_positions, key_positions, price):
    return [
        [
            [
                -price * r1 * math.log(1 + r2 * abs(i - j))
                for j in key_positions.tolist()
            ]
            for i in query_positions.tolist()
        ]
        for r1, r2 in zip(scale.tolist(), rate.tolist(), strict=True)
    ]


def kerple_of_the_past(scale, rate, query_positions, key_positions, price):
    past = (query_positions[:, None] - key_positions).clamp(min=0)
    inside = 1 + torch.einsum("h,qk->hqk", rate, past.float())
    return inside.log().mul(-price * scale.view(-1, 1, 1))


def kerple_by_a_power(scale, rate, query_positions, key_positions, price):
    distance = (key_positions - query_positions[:, None]).abs()
    inside = 1 + rate.double()[:, None, None] * distance
    return (inside ** (-price * scale.double()[:, None, None])).log()


def faint_by_counting(heads, head, share):
    slope = 2 ** (-8 * (head + 1) / heads)
    weights = torch.softmax(-slope * torch.arange(4_096).double(), dim=0)
    return (weights >= share).sum()


def faint_by_formula(heads, head, share):
    slope = 1 / 2 ** (8 / heads * (head + 1))
    return math.ceil((math.log(-math.expm1(-slope)) - math.log(share)) / slope)


def faint_by_walking(heads, head, share):
    def answer():
        fall, steps = np.exp(-(2.0 ** (-8 * (head + 1) / heads))), 0
        weight = 1 - fall
        while weight >= share:
            weight, steps = weight * fall, steps + 1
        return steps

    return answer


RIGHT = {
    "alibi_slopes": (slopes_as_the_authors, slopes_as_hugging_face, slopes_by_loops),
    "alibi_logits": (
        logits_added,
        logits_subtracted,
        logits_key_only,
        logits_with_a_mask,
        logits_in_the_past,
        logits_by_loops,
    ),
    "fold_alibi": (
        fold_from_the_last,
        fold_with_a_price_on_the_key,
        fold_by_numpy,
        fold_in_front,
    ),
    "kerple_bias": (
        kerple_by_numpy,
        kerple_by_loops,
        kerple_of_the_past,
        kerple_by_a_power,
    ),
    "first_faint": (faint_by_counting, faint_by_formula, faint_by_walking),
}
