"""Slips of the stem learned: stretching, padding, a cached step, what a row learns."""

import torch
from torch.nn import functional

from coursekit.learned import interpolate_rows, repeat_last_row, zero_rows
from coursekit.position import positions_from_mask
from coursekit.slips.exercise import Exercise, Property, Slip, whole, wholes

# stretch_table(table, new_length) -> longer table; the first `kept` rows stay


def _short_table(generator, size, kept):
    """Draw a table and a length that is no whole multiple of its own."""
    rows = whole(generator, 5 + 3 * size, 8 + 3 * size)
    new_rows = 2 * rows + whole(generator, 1, rows - 2)
    table = torch.randn(kept + rows, 4 + size, generator=generator)
    return table, kept + new_rows


def _stretched(table, new_length, kept):
    rest = interpolate_rows(table[kept:], new_length - kept)
    return torch.cat((table[:kept], rest))


def _between(table, new_length, kept, place, share=None):
    """Put the new rows at ``place`` on the rest of the table."""
    rest = table[kept:].double()
    place = place.double().clamp(0, len(rest) - 1)
    lower = place.long().clamp(max=len(rest) - 2)
    share = place - lower if share is None else share(place - lower)
    rows = torch.lerp(rest[lower], rest[lower + 1], share.unsqueeze(-1))
    return torch.cat((table[:kept].double(), rows))


def _places(table, new_length, kept):
    """Count the new rows; return old and new number of rows, too."""
    old, new = len(table) - kept, new_length - kept
    return torch.arange(new), old, new


def _half_a_row(table, new_length, kept):
    index, old, new = _places(table, new_length, kept)
    return _between(table, new_length, kept, (index + 0.5) * old / new - 0.5)


def _ratio_of_lengths(table, new_length, kept):
    index, old, new = _places(table, new_length, kept)
    return _between(table, new_length, kept, index * old / new)


def _last_not_reached(table, new_length, kept):
    index, old, new = _places(table, new_length, kept)
    return _between(table, new_length, kept, index * (old - 1) / new)


def _nearest(table, new_length, kept):
    index, old, new = _places(table, new_length, kept)
    place = index * (old - 1) / (new - 1)
    return _between(table, new_length, kept, place.round())


def _rounded_down(table, new_length, kept):
    index, old, new = _places(table, new_length, kept)
    return _between(table, new_length, kept, index * (old - 1) // (new - 1))


def _share_turned(table, new_length, kept):
    index, old, new = _places(table, new_length, kept)
    place = index * (old - 1) / (new - 1)
    return _between(table, new_length, kept, place, lambda share: 1 - share)


def _last_repeated(table, new_length, kept):
    return repeat_last_row(table, new_length)


def _zeros(table, new_length, kept):
    return zero_rows(table, new_length)


def _all_stretched(table, new_length, kept):
    return interpolate_rows(table, new_length)


def _too_many(table, new_length, kept):
    return torch.cat((table[:kept], interpolate_rows(table[kept:], new_length)))


def _features_stretched(table, new_length, kept):
    wide = functional.interpolate(
        table[None], new_length, mode="linear", align_corners=True
    )
    return wide[0]


def _keeps_the_first(got, table, new_length, kept):
    return torch.allclose(got[:kept].double(), table[:kept].double(), atol=1e-4)


def _keeps_both_ends(got, table, new_length, kept):
    ends, wanted = got[[kept, -1]].double(), table[[kept, -1]].double()
    return torch.allclose(ends, wanted, atol=1e-4)


STRETCH_TABLE = Exercise(
    name="stretch_table",
    stem="learned",
    given="(table, new_length), (rows, d_model) and more rows than it has → "
    "(new_length, d_model), the first `kept` rows as they are",
    right=_stretched,
    draw=_short_table,
    constants={"kept": (2, 1, 3, 4)},
    proved="rows kept: {kept}, the others are spread evenly from end to end",
    properties=(
        Property("the rows to be kept have changed.", _keeps_the_first),
        Property(
            "behind the rows to be kept, the first and the last row of the table must "
            "still be first and last.",
            _keeps_both_ends,
        ),
    ),
    slips=(
        Slip(
            "half a row",
            "Rows are taken as cells with a middle (align_corners=False), a convention "
            "of other code; here the ends stay at the ends.",
            _half_a_row,
        ),
        Slip(
            "ratio of lengths",
            "The step is old / new number of rows, so the end comes too early. There "
            "is one gap less than rows: (old - 1) / (new - 1).",
            _ratio_of_lengths,
        ),
        Slip(
            "last not reached",
            "The step is (old - 1) / new, so the last row is not reached; new rows "
            "have one gap less, too: new - 1.",
            _last_not_reached,
        ),
        Slip(
            "nearest",
            "Each new row is a copy of the nearest old one; go along a straight line "
            "between two.",
            _nearest,
        ),
        Slip(
            "rounded down",
            "Each new row is a copy of the old one below; what the floor cut off is "
            "the share of the next row.",
            _rounded_down,
        ),
        Slip(
            "share turned",
            "The two shares have changed places: a new row just above an old one is "
            "almost that one.",
            _share_turned,
        ),
        Slip(
            "last repeated",
            "The new rows are copies of the last one, so their positions look the "
            "same; stretch the table.",
            _last_repeated,
        ),
        Slip(
            "zeros",
            "The new rows are zero, so their positions look the same; stretch the "
            "table.",
            _zeros,
        ),
        Slip(
            "all stretched",
            "All rows are stretched, also those to be kept ({kept}). They are no "
            "places of a text, so the rest alone is stretched.",
            _all_stretched,
        ),
        Slip(
            "too many",
            "It has {kept} more: new_length counts all rows, those to be kept "
            "included.",
            _too_many,
        ),
        Slip(
            "features stretched",
            "The features are stretched: functional.interpolate works on the last "
            "axis, so transpose before and after.",
            _features_stretched,
        ),
    ),
)

# table_rows(mask, new) -> the rows that the last `new` tokens read


def _texts_in_a_cache(generator, size, padding_id):
    """Draw texts that are padded left, right, on both sides and not at all."""
    length, batch = 9 + 2 * size, 4 + size
    left = torch.randint(1, 4, (batch, 1), generator=generator)
    right = torch.randint(1, 3, (batch, 1), generator=generator)
    left[0], right[1], left[2], right[2] = 0, 0, 0, 0
    index = torch.arange(length)
    mask = (index >= left) & (index < length - right)
    return mask[torch.randperm(batch, generator=generator)], 3 + size


def _all_rows(mask, padding_id):
    return mask.cumsum(-1) * mask + padding_id


def _rows(mask, new, padding_id):
    return _all_rows(mask, padding_id)[:, -new:]


def _from_the_start_again(mask, new, padding_id):
    return _all_rows(mask[:, -new:], padding_id)


def _every_place(mask, new, padding_id):
    index = torch.arange(mask.shape[1]) + padding_id + 1
    return index.expand(mask.shape)[:, -new:]


def _padding_counted(mask, new, padding_id):
    rows = _every_place(mask, new, padding_id)
    return rows.masked_fill(~mask[:, -new:], padding_id)


def _no_offset(mask, new, padding_id):
    return _rows(mask, new, padding_id) - padding_id - 1


def _the_count_alone(mask, new, padding_id):
    return _all_rows(mask, 0)[:, -new:]


def _on_the_row_of_padding(mask, new, padding_id):
    return (positions_from_mask(mask) + padding_id)[:, -new:]


def _padding_not_reset(mask, new, padding_id):
    return (mask.cumsum(-1) + padding_id)[:, -new:]


def _padding_at_zero(mask, new, padding_id):
    return _rows(mask, new, padding_id).masked_fill(~mask[:, -new:], 0)


def _padding_as_a_token(mask, new, padding_id):
    return (positions_from_mask(mask) + padding_id + 1)[:, -new:]


def _the_first(mask, new, padding_id):
    return _all_rows(mask, padding_id)[:, :new]


def _padding_apart(got, mask, new, padding_id):
    return not bool((got[mask[:, -new:]] == padding_id).any())


TABLE_ROWS = Exercise(
    name="table_rows",
    stem="learned",
    given="(mask, new), (batch, length) boolean, True = a real token → (batch, new), "
    "the table rows of the last `new` tokens",
    right=_rows,
    draw=_texts_in_a_cache,
    constants={"padding_id": (1, 3, 2, 4)},
    proved="real tokens are counted from the row after {padding_id}, a cached step "
    "goes on",
    properties=(Property("a token reads the row of padding.", _padding_apart),),
    slips=(
        Slip(
            "from the start again",
            "The last tokens start again at the first row. Count over the whole mask, "
            "then cut.",
            _from_the_start_again,
        ),
        Slip(
            "every place",
            "Every place is counted, padding too. Count the real tokens; padding reads "
            "row {padding_id}.",
            _every_place,
        ),
        Slip(
            "padding counted",
            "Padding reads its own row but is still counted, so a text padded on the "
            "left starts late. Count the real tokens: cumsum.",
            _padding_counted,
        ),
        Slip(
            "no offset",
            "The offset is missing: the first token has 0 and padding -1, which reads "
            "the last row of a table. Add {padding_id} + 1.",
            _no_offset,
        ),
        Slip(
            "count alone",
            "padding_id is never added: this is the count alone, from 1. Padding reads "
            "row {padding_id} and the first token the row after it.",
            _the_count_alone,
        ),
        Slip(
            "on the row of padding",
            "Each token is one row too early, so the first shares a row with padding; "
            "tokens start at {padding_id} + 1.",
            _on_the_row_of_padding,
        ),
        Slip(
            "padding not reset",
            "Padding behind a text keeps the count of its last token; it reads row "
            "{padding_id}. Multiply by the mask.",
            _padding_not_reset,
        ),
        Slip(
            "padding at zero",
            "Padding reads row 0; its own row is {padding_id}.",
            _padding_at_zero,
        ),
        Slip(
            "padding as a token",
            "Padding reads the row of a first token; its own row is {padding_id}.",
            _padding_as_a_token,
        ),
        Slip(
            "the first",
            "These are the first tokens; the last are asked: rows[:, -new:].",
            _the_first,
        ),
    ),
)

# row_gradients(positions, gradient, rows) -> gradient of the table


def _read_rows(generator, size, padding_row):
    """Draw positions: one twice in a text, one in two texts, some rows in none."""
    batch, length, rows = 3 + size % 2, 5 + size, 13 + 3 * size
    known = wholes(generator, padding_row + 1, rows, rows - padding_row - 4)
    pick = torch.randint(len(known), (batch, length), generator=generator)
    positions = known[pick]
    positions[0, 0] = positions[1, 1] = padding_row
    positions[0, 1:3] = positions[1, 0] = known[0]
    gradient = torch.randn(batch, length, 4 + size % 3, generator=generator)
    return positions, gradient, rows


def _added(positions, gradient, rows):
    empty = gradient.new_zeros(rows, gradient.shape[-1])
    return empty.index_add(0, positions.flatten(), gradient.flatten(0, 1))


def _frozen(sums, padding_row):
    sums = sums.clone()
    sums[padding_row] = 0
    return sums


def _row_gradients(positions, gradient, rows, padding_row):
    return _frozen(_added(positions, gradient, rows), padding_row)


def _overwritten(positions, gradient, rows, padding_row):
    result = torch.zeros(rows, gradient.shape[-1])
    for p, g in zip(positions.flatten(), gradient.flatten(0, 1), strict=True):
        result[p] = g
    return _frozen(result, padding_row)


def _averaged(positions, gradient, rows, padding_row):
    reads = positions.flatten().bincount(minlength=rows).clamp(min=1)
    return _row_gradients(positions, gradient, rows, padding_row) / reads[:, None]


def _over_the_batch(positions, gradient, rows, padding_row):
    return _row_gradients(positions, gradient, rows, padding_row) / len(positions)


def _first_text(positions, gradient, rows, padding_row):
    return _row_gradients(positions[:1], gradient[:1], rows, padding_row)


def _padding_learns(positions, gradient, rows, padding_row):
    return _added(positions, gradient, rows)


def _by_place(positions, gradient, rows, padding_row):
    index = torch.arange(positions.shape[1]).expand(positions.shape)
    return _row_gradients(index, gradient, rows, padding_row)


def _one_row_early(positions, gradient, rows, padding_row):
    return _row_gradients((positions - 1) % rows, gradient, rows, padding_row)


def _a_step(positions, gradient, rows, padding_row):
    return -_row_gradients(positions, gradient, rows, padding_row)


def _counted(positions, gradient, rows, padding_row):
    ones = torch.ones_like(gradient)
    return _row_gradients(positions, ones, rows, padding_row)


def _nothing_for_unread(got, positions, gradient, rows, padding_row):
    unread = torch.ones(rows, dtype=torch.bool)
    unread[positions.flatten()] = False
    return not bool(got[unread].any())


ROW_GRADIENTS = Exercise(
    name="row_gradients",
    stem="learned",
    given="(positions, gradient, rows), (batch, length) and (batch, length, d_model) "
    "of the rows that were read → (rows, d_model), 0 for `padding_row`",
    right=_row_gradients,
    draw=_read_rows,
    constants={"padding_row": (1, 0, 2, 3)},
    proved="each row has the sum over its readers, unread rows and padding have none",
    properties=(
        Property("a row that nobody reads has a gradient.", _nothing_for_unread),
    ),
    slips=(
        Slip(
            "overwritten",
            "A row that is read twice keeps its last reader alone: indexing with = or "
            "+= writes once for each row. Add all: index_add.",
            _overwritten,
        ),
        Slip(
            "averaged",
            "Each row has the mean over its readers; gradients of several uses add up.",
            _averaged,
        ),
        Slip(
            "over the batch",
            "It is divided by the number of texts; the gradients that are given "
            "belong to one loss already. Add them.",
            _over_the_batch,
        ),
        Slip(
            "first text",
            "Only the first text counts; all of the batch read the same table.",
            _first_text,
        ),
        Slip(
            "padding learns",
            "The row of padding has a gradient; row {padding_row} must not learn.",
            _padding_learns,
        ),
        Slip(
            "by place",
            "The place in the text is taken for the row. Use the positions that are "
            "given.",
            _by_place,
        ),
        Slip(
            "one row early",
            "Each gradient is one row too early. Positions count from 0, as rows do.",
            _one_row_early,
        ),
        Slip(
            "a step",
            "The sign is that of a step downhill; the gradient itself is asked.",
            _a_step,
        ),
        Slip(
            "counted",
            "It counts the readers of each row; add up their gradients.",
            _counted,
        ),
    ),
)

# locality(history) -> mean cosine of rows that are `apart` apart, for each table


def _wandering(generator, size, apart):
    """Draw tables whose rows wander, are of unequal length and share a large mean."""
    steps, rows, d_model = 4 + size, 11 + 3 * size, 6 + 2 * size
    moves = torch.randn(steps, rows, d_model, generator=generator)
    mean = 2 + torch.randn(steps, 1, d_model, generator=generator)
    lengths = torch.linspace(1, 3, rows)[torch.randperm(rows, generator=generator)]
    return (moves.cumsum(-2) * lengths[:, None] + mean,)


def _mean_cosine(rows, apart):
    near, far = rows[:, :-apart].double(), rows[:, apart:].double()
    return functional.cosine_similarity(near, far, dim=-1).mean(-1)


def _centred(history):
    return history - history.mean(-2, keepdim=True)


def _locality(history, apart):
    return _mean_cosine(_centred(history), apart)


def _not_centred(history, apart):
    return _mean_cosine(history, apart)


def _each_row_centred(history, apart):
    return _mean_cosine(history - history.mean(-1, keepdim=True), apart)


def _one_mean(history, apart):
    return _mean_cosine(history - history.mean((-2, -1), keepdim=True), apart)


def _mean_of_all_tables(history, apart):
    return _mean_cosine(history - history.mean((0, 1)), apart)


def _mean_over_time(history, apart):
    return _mean_cosine(history - history.mean(0), apart)


def _centred_late(history, apart):
    return _locality(functional.normalize(history, dim=-1), apart)


def _ring(history, apart):
    rows = _centred(history)
    partners = rows.roll(-apart, dims=-2)
    return functional.cosine_similarity(rows, partners, dim=-1).mean(-1)


def _products(history, apart):
    rows = _centred(history)
    return (rows[:, :-apart] * rows[:, apart:]).sum(-1).mean(-1)


def _one_division(history, apart):
    squares = _centred(history).square().sum(-1)
    return _products(history, apart) / squares.mean(-1)


def _columns(history, apart):
    return _mean_cosine(_centred(history).mT, apart)


def _every_pair(history, apart):
    rows = functional.normalize(_centred(history), dim=-1)
    return (rows @ rows.mT).mean((-2, -1))


def _distance(history, apart):
    return 1 - _locality(history, apart)


def _with_itself(history, apart):
    return torch.ones(len(history))


def _one_number(history, apart):
    return _locality(history, apart).mean()


LOCALITY = Exercise(
    name="locality",
    stem="learned",
    given="(history), tables (step, rows, d_model) → (step,), each the mean cosine of "
    "rows j and j + `apart`, its mean row taken away",
    right=_locality,
    draw=_wandering,
    constants={"apart": (1, 2, 3, 4)},
    proved="each table centred, and the mean over all rows that are {apart} apart",
    properties=(
        Property(
            "a mean of cosines lies between -1 and 1.",
            lambda got, history, apart: bool((got.abs() < 1 + 1e-4).all()),
        ),
    ),
    slips=(
        Slip(
            "not centred",
            "The mean row is still there, and all rows share it: take it away first.",
            _not_centred,
        ),
        Slip(
            "each row centred",
            "Each row has lost the mean of its own features; take away the mean row: "
            "mean(-2).",
            _each_row_centred,
        ),
        Slip(
            "one mean",
            "One number is taken away from a whole table; the mean row has one for "
            "each feature: mean(-2).",
            _one_mean,
        ),
        Slip(
            "mean of all tables",
            "One row is taken away from all tables; each has a mean row of its own: "
            "mean(-2, keepdim=True).",
            _mean_of_all_tables,
        ),
        Slip(
            "mean over time",
            "The mean over the steps is taken away: mean(0) of a history. Take the "
            "mean over the rows, mean(-2, keepdim=True).",
            _mean_over_time,
        ),
        Slip(
            "centred late",
            "Rows are brought to length 1 before the mean row is taken away; do it "
            "after.",
            _centred_late,
        ),
        Slip(
            "ring",
            "The last rows meet the first, as roll does; a table is no ring. Compare "
            "rows[:-{apart}] with rows[{apart}:].",
            _ring,
        ),
        Slip(
            "products",
            "These are dot products; a cosine is divided by both lengths.",
            _products,
        ),
        Slip(
            "one division",
            "The mean product is divided by the mean square; each pair is divided by "
            "its own two lengths, then comes the mean.",
            _one_division,
        ),
        Slip(
            "columns",
            "Columns are compared; positions are rows.",
            _columns,
        ),
        Slip(
            "every pair",
            "It is the mean over every pair of rows; only those {apart} apart count.",
            _every_pair,
        ),
        Slip(
            "distance",
            "That is 1 minus the cosine, a distance.",
            _distance,
        ),
        Slip(
            "with itself",
            "Each row meets itself; its partner is {apart} later.",
            _with_itself,
        ),
        Slip(
            "one number",
            "It is the mean over all tables; each step keeps its own: mean(-1).",
            _one_number,
        ),
    ),
)

# times_read() -> number


def _times_read(length, row, texts):
    return texts * (length - row) // length


def _every_text(length, row, texts):
    return texts


def _row_from_one(length, row, texts):
    return texts * (length - row + 1) // length


def _next_row(length, row, texts):
    return texts * (length - row - 1) // length


def _shorter_ones(length, row, texts):
    return texts * row // length


def _those_that_end_there(length, row, texts):
    return texts // length


def _even_shares(length, row, texts):
    return texts * (length + 1) // (2 * length)


TIMES_READ = Exercise(
    name="times_read",
    stem="learned",
    given="() → how often row `row` is read in `texts` texts, if each length from 1 to "
    "`length` is as frequent as any other",
    right=_times_read,
    constants={"length": (40, 48, 60), "row": (31, 34, 37), "texts": (12_000, 24_000)},
    proved="a text must be longer than the row's number; the last row is read least",
    slips=(
        Slip(
            "every text",
            "That is every text; a short one ends before row {row}.",
            _every_text,
        ),
        Slip(
            "row from one",
            "A text of {row} tokens counts, too, but it reads rows 0 to {row} - 1.",
            _row_from_one,
        ),
        Slip(
            "next row",
            "The shortest texts that read it are missing: {row} + 1 tokens are enough, "
            "for rows start at 0.",
            _next_row,
        ),
        Slip(
            "shorter ones",
            "Those are the texts that are too short to read it.",
            _shorter_ones,
        ),
        Slip(
            "those that end there",
            "Those are the texts of one length; all longer ones read row {row}, too.",
            _those_that_end_there,
        ),
        Slip(
            "even shares",
            "That is the mean over all rows; early rows are read more often, late ones "
            "less.",
            _even_shares,
        ),
    ),
)

EXERCISES = (STRETCH_TABLE, TABLE_ROWS, ROW_GRADIENTS, LOCALITY, TIMES_READ)
