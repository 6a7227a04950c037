"""Right answers of the stem learned, in other words."""

import math
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def stretched_by_numpy(table, new_length, kept):
    rest = table[kept:].numpy()
    place = np.linspace(0, len(rest) - 1, new_length - kept)
    columns = [np.interp(place, np.arange(len(rest)), column) for column in rest.T]
    return np.concatenate((table[:kept].numpy(), np.stack(columns, axis=1)))


def stretched_by_torch(table, new_length, kept):
    rest = table[kept:].T.unsqueeze(0)
    look = {"mode": "linear", "align_corners": True}
    rest = functional.interpolate(rest, new_length - kept, **look)
    return torch.cat((table[:kept], rest[0].T))


def stretched_by_loops(table, new_length, kept):
    rows = table.tolist()
    old, new = len(rows) - kept, new_length - kept
    result = rows[:kept]
    for j in range(new):
        part, whole = math.modf(j * (old - 1) / (new - 1))
        below = rows[kept + int(whole)]
        above = rows[min(kept + int(whole) + 1, len(rows) - 1)]
        mixed = [(1 - part) * a + part * b for a, b in zip(below, above, strict=True)]
        result.append(mixed)
    return result


def stretched_by_hats(table, new_length, kept):
    old, new = len(table) - kept, new_length - kept
    place = torch.linspace(0, old - 1, new)
    hats = (1 - (place[:, None] - torch.arange(old)).abs()).clamp(min=0)
    eye = torch.eye(kept)
    return torch.block_diag(eye, hats) @ table


def rows_by_loops(mask, new, padding_id):
    table_rows = []
    for text in mask.tolist():
        seen, row = 0, []
        for real in text:
            seen += real
            row.append(padding_id + seen if real else padding_id)
        table_rows.append(row[len(row) - new :])
    return torch.tensor(table_rows)


def rows_by_an_offset(mask, new, padding_id):
    mask = mask.long()
    positions = mask.cumsum(dim=1) * mask - 1
    return positions[:, mask.shape[1] - new :] + padding_id + 1


def rows_from_the_cache(mask, new, padding_id):
    before, now = mask.split((mask.shape[1] - new, new), dim=1)
    past = before.sum(-1, keepdim=True)
    return torch.where(now, past + now.cumsum(-1) + padding_id, padding_id)


def rows_by_numpy(mask, new, padding_id):
    rows = np.full(mask.shape, padding_id)
    for row, text in zip(rows, mask.numpy(), strict=True):
        row[text] += np.arange(1, text.sum() + 1)
    return rows[:, -new:]


def gradients_by_autograd(positions, gradient, rows, padding_row):
    table = nn.Embedding(rows, gradient.shape[-1], padding_idx=padding_row)
    table(positions).backward(gradient)
    return table.weight.grad


def gradients_by_one_hot(positions, gradient, rows, padding_row):
    read = functional.one_hot(positions, rows).float()
    read[..., padding_row] = 0
    return torch.einsum("blr,bld->rd", read, gradient)


def gradients_by_loops(positions, gradient, rows, padding_row):
    result = [[0.0] * gradient.shape[-1] for _ in range(rows)]
    for text, values in zip(positions.tolist(), gradient.tolist(), strict=True):
        for row, value in zip(text, values, strict=True):
            if row != padding_row:
                result[row] = [a + b for a, b in zip(result[row], value, strict=True)]
    return result


def gradients_by_numpy(positions, gradient, rows, padding_row):
    result = np.zeros((rows, gradient.shape[-1]))
    np.add.at(result, positions.numpy(), gradient.numpy())
    result[padding_row] = 0
    return result


def locality_by_loops(history, apart):
    found = []
    for table in history.double():
        rows, total = table - table.mean(0), 0.0
        for a, b in zip(rows[:-apart], rows[apart:], strict=True):
            total += (a @ b / (a @ a).sqrt() / (b @ b).sqrt()).item()
        found.append(total / (len(rows) - apart))
    return found


def locality_by_the_diagonal(history, apart):
    history -= history.mean(dim=1, keepdim=True)
    history /= history.norm(dim=2, keepdim=True)
    alike = history @ history.transpose(1, 2)
    return alike.diagonal(apart, dim1=1, dim2=2).mean(dim=1)


def locality_by_numpy(history, apart):
    rows = history.numpy() - history.numpy().mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(rows, axis=2)
    dots = np.einsum("tld,tld->tl", rows[:, apart:], rows[:, :-apart])
    return np.mean(dots / lengths[:, apart:] / lengths[:, :-apart], axis=1)


def reads_by_counting(length, row, texts):
    return sum(texts // length for n in range(1, length + 1) if row in range(n))


def reads_by_share(length, row, texts):
    return round((1 - row / length) * texts)


def reads_by_training(length, row, texts):
    def answer():
        lengths = [1 + n % length for n in range(texts)]
        random.Random(0).shuffle(lengths)
        return sum(n > row for n in lengths)

    return answer


RIGHT = {
    "stretch_table": (
        stretched_by_numpy,
        stretched_by_torch,
        stretched_by_loops,
        stretched_by_hats,
    ),
    "table_rows": (
        rows_by_loops,
        rows_by_an_offset,
        rows_from_the_cache,
        rows_by_numpy,
    ),
    "row_gradients": (
        gradients_by_autograd,
        gradients_by_one_hot,
        gradients_by_loops,
        gradients_by_numpy,
    ),
    "locality": (locality_by_loops, locality_by_the_diagonal, locality_by_numpy),
    "times_read": (reads_by_counting, reads_by_share, reads_by_training),
}
