"""Right answers of the stem extrapolation, in other words."""

import math

import numpy as np
import torch


def window_by_loops(query_positions, key_positions, width):
    return [
        [0.0 if q - k < width else -math.inf for k in key_positions.tolist()]
        for q in query_positions.tolist()
    ]


def window_by_numpy(query_positions, key_positions, width):
    back = np.subtract.outer(query_positions.numpy(), key_positions.numpy())
    return np.where(back < width, 0.0, -1e9)


def window_by_logarithm(query_positions, key_positions, width):
    first = query_positions.unsqueeze(1) - (width - 1)
    return (key_positions >= first).float().log().requires_grad_()


def window_without_future(query_positions, key_positions, width):
    back = query_positions[:, None] - key_positions
    seen = (back >= 0) & (back < width)
    return torch.where(seen, 0.0, torch.finfo(torch.float32).min)


def window_as_a_band(query_positions, key_positions, width):
    far = torch.cdist(query_positions[:, None] * 1.0, key_positions[:, None] * 1.0)
    return torch.zeros_like(far).masked_fill_(far > width - 0.5, float("-inf"))


def unit_in_nats(unit):
    return {"nats": 1.0, "bits": 0.6931471805599453}[unit]


def losses_by_loops(losses, lengths, unit):
    found = []
    for length in lengths:
        total = 0.0
        for start in range(0, len(losses), length):
            for before in range(length):
                total += losses[start + before, before].item()
        found.append(total / len(losses) / unit_in_nats(unit))
    return found


def losses_by_diagonals(losses, lengths, unit):
    def mean(length):
        blocks = losses[:, :length].unflatten(0, (-1, length))
        return blocks.diagonal(dim1=1, dim2=2).mean()

    return torch.stack([mean(length) for length in lengths]) / unit_in_nats(unit)


def losses_by_numpy(losses, lengths, unit):
    token = np.arange(len(losses))
    found = [losses.numpy()[token, token % length].mean() for length in lengths]
    return np.array(found, dtype=np.float32) / unit_in_nats(unit)


def losses_by_gather(losses, lengths, unit):
    place = torch.arange(len(losses))[:, None] % torch.tensor(lengths)
    return losses.gather(1, place).mean(dim=0) / unit_in_nats(unit)


def row_of(distance, num_buckets, max_distance):
    exact = num_buckets // 2
    if distance < exact:
        return distance
    steps = math.log(distance / exact) / math.log(max_distance / exact)
    return min(num_buckets - 1, exact + int(steps * (num_buckets - exact)))


def table_in_place(table, trained_length, max_distance):
    last = row_of(trained_length - 1, len(table), max_distance)
    table[last + 1 :] = table[last]
    return table


def table_by_index(table, trained_length, max_distance):
    rows = [row_of(x, len(table), max_distance) for x in range(trained_length)]
    return table[torch.arange(len(table)).clamp(max=max(rows))]


def table_by_numpy(table, trained_length, max_distance):
    kept = row_of(trained_length - 1, len(table), max_distance) + 1
    return np.pad(table.numpy()[:kept], ((0, len(table) - kept), (0, 0)), mode="edge")


def table_by_loops(table, trained_length, max_distance):
    rows, asked = table.tolist(), set()
    for distance in range(trained_length):
        asked.add(row_of(distance, len(rows), max_distance))
    return [rows[i] if i in asked else rows[len(asked) - 1] for i in range(len(rows))]


def turns(steps, width, base):
    speeds = base ** (-torch.arange(0, width, 2).double() / width)
    return torch.polar(torch.ones(()).double(), steps[:, None] * speeds)


def evict_by_complex_numbers(keys, positions, excess, sinks, base):
    kept = torch.cat((keys[:, :sinks], keys[:, sinks + excess :]), dim=1)
    old = torch.cat((positions[:sinks], positions[sinks + excess :]))
    turn = turns(torch.arange(len(old)) - old, keys.shape[-1], base)
    pairs = torch.view_as_complex(kept.double().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2)


def evict_by_unturned_keys(keys, positions, excess, sinks, base):
    def turn(x, angles):
        even, odd, cos, sin = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1)

    speeds = base ** (-torch.arange(0, keys.shape[-1], 2) / keys.shape[-1])
    plain = turn(keys, -torch.outer(positions, speeds)).flatten(-2)
    index = [i for i in range(len(positions)) if not sinks <= i < sinks + excess]
    again = turn(plain[:, index], torch.outer(torch.arange(len(index)), speeds))
    return again.flatten(-2)


def evict_by_loops(keys, positions, excess, sinks, base):
    keys, old = keys.tolist(), positions.tolist()
    for head in keys:
        del head[sinks : sinks + excess]
    del old[sinks : sinks + excess]
    for head in keys:
        for new, row in enumerate(head):
            for i in range(0, len(row), 2):
                angle = (new - old[new]) * base ** (-i / len(row))
                z = complex(row[i], row[i + 1]) * complex(
                    math.cos(angle), math.sin(angle)
                )
                row[i], row[i + 1] = z.real, z.imag
    return keys


def little_by_counting(tokens, length, needed):
    return sum(token % length < needed for token in range(tokens))


def little_by_share(tokens, length, needed):
    return lambda: tokens * needed / length


def little_by_windows(tokens, length, needed):
    windows = torch.arange(tokens).view(-1, length)
    return (windows - windows[:, :1] < needed).sum()


RIGHT = {
    "window_bias": (
        window_by_loops,
        window_by_numpy,
        window_by_logarithm,
        window_without_future,
        window_as_a_band,
    ),
    "loss_by_length": (
        losses_by_loops,
        losses_by_diagonals,
        losses_by_numpy,
        losses_by_gather,
    ),
    "mend_table": (table_in_place, table_by_index, table_by_numpy, table_by_loops),
    "evict": (evict_by_complex_numbers, evict_by_unturned_keys, evict_by_loops),
    "little_context": (little_by_counting, little_by_share, little_by_windows),
}
