"""Slips of the stem relative: signs, clips, buckets and the relative shift."""

import math

import torch

from coursekit.relative import (
    clipped_index,
    relative_positions,
    relative_scores,
    t5_bucket,
)
from coursekit.slips.exercise import Exercise, Property, Slip, whole, wholes

ORDERS = ("key minus query", "query minus key")  # how published tables are counted

# shaw_index(query_positions, key_positions) -> row of the table for each pair


def _cached(generator, clip, queries, keys):
    """Draw positions in any order, with offsets beyond the clip on both sides."""
    first, length = whole(generator, 2, 9), 3 * clip + keys
    key_positions = first + wholes(generator, 1, length, keys)
    query_positions = first + wholes(generator, 1, length, queries)
    key_positions[0], key_positions[keys // 2] = first, first + length
    query_positions[0], query_positions[1] = first + length, first
    return query_positions, key_positions


def _far_apart(generator, size, clip):
    return _cached(generator, clip, 4 + size, 9 + 2 * size)


def _shaw_index(query, key, clip):
    return clipped_index(relative_positions(query, key), clip)


def _query_minus_key(query, key, clip):
    return 2 * clip - _shaw_index(query, key, clip)


def _not_clipped(query, key, clip):
    return relative_positions(query, key) + clip


def _not_moved(query, key, clip):
    return relative_positions(query, key).clamp(-clip, clip)


def _one_row_short(query, key, clip):
    return (relative_positions(query, key) + clip).clamp(0, 2 * clip - 1)


def _clip_below(query, key, clip):
    return clipped_index(relative_positions(query, key), clip - 1)


def _row_from_one(query, key, clip):
    return _shaw_index(query, key, clip) + 1


def _by_index(query, key, clip):
    return _shaw_index(torch.arange(len(query)), torch.arange(len(key)), clip)


def _distances(query, key, clip):
    return relative_positions(query, key).abs().clamp(max=clip)


def _wrapped(query, key, clip):
    return (relative_positions(query, key) + clip) % (2 * clip + 1)


def _keys_first(query, key, clip):
    return _shaw_index(query, key, clip).T


def _within_the_table(got, query, key, clip):
    return bool(((got >= 0) & (got <= 2 * clip)).all())


SHAW_INDEX = Exercise(
    name="shaw_index",
    stem="relative",
    given="(query_positions, key_positions), two rows → (query, key) whole numbers "
    "from 0 to 2 · clip; row 0 is for the offset -clip",
    right=_shaw_index,
    draw=_far_apart,
    constants={"clip": (4, 3, 5, 6)},
    proved="key minus query, {clip} rows on each side and one between",
    properties=(Property("a row is outside 0 … 2 · clip.", _within_the_table),),
    slips=(
        Slip(
            "query minus key",
            "The sign is turned: an offset is key minus query, so the past has the "
            "rows below {clip}.",
            _query_minus_key,
        ),
        Slip(
            "not clipped",
            "Offsets are not clipped; beyond {clip} they share the row at the end.",
            _not_clipped,
        ),
        Slip(
            "not moved",
            "Rows start at -{clip}, and a table reads a negative one from its end, "
            "without a word. Add the clip.",
            _not_moved,
        ),
        Slip(
            "one row short",
            "The last row is missing: -{clip} … {clip} and 0 between are one more than "
            "2 · {clip}.",
            _one_row_short,
        ),
        Slip(
            "clip below",
            "The clip is one too small: an offset of {clip} still has a row of its "
            "own.",
            _clip_below,
        ),
        Slip(
            "row from one",
            "Each row is one too large. Rows count from 0, so offset 0 has row {clip}.",
            _row_from_one,
        ),
        Slip(
            "by index",
            "Row and column numbers are taken for positions. Subtract the positions "
            "that are given; with a cache they differ.",
            _by_index,
        ),
        Slip(
            "distances",
            "The sign is lost: past and future share rows.",
            _distances,
        ),
        Slip(
            "wrapped",
            "Far offsets start again at the other end, as % does; clamp them.",
            _wrapped,
        ),
        Slip(
            "keys first",
            "The axes have changed places: queries are down, keys across.",
            _keys_first,
        ),
    ),
)

# shaw_scores(query, table, offsets) -> what the rows add to the scores


def _query_and_table(generator, size, order):
    """Draw queries, rows, and offsets that reach beyond the rows on both sides."""
    clip, heads, head_dim = 3 + size, 3 + size % 2, 5 + 3 * size
    queries, keys = 4 + size, 7 + 3 * size
    positions = _cached(generator, clip, queries, keys)
    return (
        torch.randn(2, heads, queries, head_dim, generator=generator),
        torch.randn(2 * clip + 1, head_dim, generator=generator),
        relative_positions(*positions),
    )


def _rising(table, order):
    """Put the row of the smallest offset first."""
    return table if order == ORDERS[0] else table.flip(0)


def _shaw_scores(query, table, offsets, order):
    return relative_scores(query, _rising(table, order), offsets)


def _no_root(query, table, offsets, order):
    return _shaw_scores(query, table, offsets, order) * query.shape[-1] ** 0.5


def _by_head_dim(query, table, offsets, order):
    return _shaw_scores(query, table, offsets, order) / query.shape[-1] ** 0.5


def _other_order(query, table, offsets, order):
    return _shaw_scores(query, table.flip(0), offsets, order)


def _far_as_nothing(query, table, offsets, order):
    near = offsets.abs() <= len(table) // 2
    return _shaw_scores(query, table, offsets, order) * near


def _far_wrapped(query, table, offsets, order):
    clip = len(table) // 2
    wrapped = (offsets + clip) % len(table) - clip
    return _shaw_scores(query, table, wrapped, order)


def _not_moved_rows(query, table, offsets, order):
    """Look up negative offsets as they are: torch counts them from the table's end."""
    clip = len(table) // 2
    rows = _rising(table, order)[offsets.clamp(-clip, clip)]
    return torch.einsum("bhqd,qkd->bhqk", query, rows) / query.shape[-1] ** 0.5


def _ends_unread(query, table, offsets, order):
    clip = len(table) // 2 - 1
    return _shaw_scores(query, table, offsets.clamp(-clip, clip), order)


def _sign_lost(query, table, offsets, order):
    return _shaw_scores(query, table, offsets.abs(), order)


def _one_query(query, table, offsets, order):
    return _shaw_scores(query[:, :, :1].expand_as(query), table, offsets, order)


def _row_sums(query, table, offsets, order):
    ones = torch.ones_like(query)
    return _shaw_scores(ones, table, offsets, order) * query.shape[-1] ** 0.5


def _not_picked(query, table, offsets, order):
    return query @ table.T / query.shape[-1] ** 0.5


SHAW_SCORES = Exercise(
    name="shaw_scores",
    stem="relative",
    given="(query, table, offsets), (batch, heads, query, head_dim), (2 · clip + 1, "
    "head_dim) and (query, key), key minus query → (batch, heads, query, key)",
    right=_shaw_scores,
    draw=_query_and_table,
    constants={"order": ORDERS},
    proved="each query meets the row of each offset, rows counted by {order}",
    slips=(
        Slip(
            "no root",
            "It is not divided by √head_dim, but it joins scores that are.",
            _no_root,
        ),
        Slip(
            "by head_dim",
            "It is divided by head_dim; its square root is meant.",
            _by_head_dim,
        ),
        Slip(
            "other order",
            "Rows are read in the other order; here row 0 is for -clip, where the "
            "table counts {order}.",
            _other_order,
        ),
        Slip(
            "far as nothing",
            "Offsets beyond the table add nothing; they share its first or last row.",
            _far_as_nothing,
        ),
        Slip(
            "far wrapped",
            "Offsets beyond the table start again at its other end, as % does; clamp "
            "them.",
            _far_wrapped,
        ),
        Slip(
            "not moved",
            "Rows start at -clip, and a table reads a negative one from its end, "
            "without a word. Add the clip.",
            _not_moved_rows,
        ),
        Slip(
            "ends unread",
            "The first and the last row are never read: 2 · clip + 1 rows have room "
            "for -clip and clip.",
            _ends_unread,
        ),
        Slip(
            "sign lost",
            "Past and future read the same rows: the sign of the offset is lost.",
            _sign_lost,
        ),
        Slip(
            "one query",
            "The first query asks for all; each query meets the rows itself.",
            _one_query,
        ),
        Slip(
            "row sums",
            "Rows are added up as if each were one number, as in T5; here the query "
            "decides what a row is worth.",
            _row_sums,
        ),
        Slip(
            "not picked",
            "There is a column for each row of the table; gather the one that each "
            "key's offset asks for.",
            _not_picked,
        ),
    ),
)

# t5_bucket(offsets) -> bucket


def _offsets(generator, size, num_buckets, max_distance, bidirectional):
    """Draw near and far offsets of both signs, 0 among them.

    Where the logarithm meets a whole number, rounding decides; these are left out.
    """
    every = torch.arange(-3 * max_distance, 3 * max_distance + 1)
    exact = num_buckets // (2 if bidirectional else 1) // 2
    steps = _steps(every.abs().clamp(exact, max_distance - 1), exact, max_distance)
    clear = (steps - steps.round()).abs() > 1e-3
    every = every[(every.abs() <= exact) | (every.abs() >= max_distance) | clear]
    near = every[every.abs() <= max_distance]
    count = 7 + 2 * size
    picks = [
        row[torch.randperm(len(row), generator=generator)[: 4 * count]]
        for row in (every, near)
    ]
    picks.append(torch.arange(-2, count - 2))
    picks[0][:2] = torch.tensor([-3, 3]) * max_distance
    return (torch.cat(picks).view(9, count),)


def _steps(distance, exact, max_distance):
    """Count the steps past the exact buckets, before any rounding."""
    growth = torch.log(distance.clamp(min=1).double() / exact)
    return growth / math.log(max_distance / exact) * exact


def _t5(offsets, num_buckets, max_distance, bidirectional):
    sizes = num_buckets, max_distance
    return t5_bucket(offsets, *sizes, bidirectional=bidirectional)


def _both_ways(offsets, num_buckets, bidirectional, bucket):
    """Give each direction its buckets: ``bucket`` of (distance, number of them)."""
    ways = 2 if bidirectional else 1
    distance = offsets.abs() if bidirectional else (-offsets).clamp(min=0)
    upper = (offsets > 0) * (num_buckets // 2) if bidirectional else 0
    return bucket(distance, num_buckets // ways) + upper


def _turned(offsets, num_buckets, max_distance, bidirectional):
    return _t5(-offsets, num_buckets, max_distance, bidirectional)


def _other_form(offsets, num_buckets, max_distance, bidirectional):
    return _t5(offsets, num_buckets, max_distance, not bidirectional)


def _past_and_future_alike(offsets, num_buckets, max_distance, bidirectional):
    return _t5(-offsets.abs(), num_buckets, max_distance, bidirectional)


def _no_logarithm(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        return distance.clamp(max=n - 1)

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _rounded(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        far = n // 2 + _steps(distance, n // 2, max_distance).round().long()
        return torch.where(distance < n // 2, distance, far.clamp(max=n - 1))

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _not_over_exact(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        growth = distance.clamp(min=1).double().log() / math.log(max_distance)
        far = n // 2 + (growth * (n // 2)).long()
        return torch.where(distance < n // 2, distance, far.clamp(max=n - 1))

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _maximum_not_over_exact(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        growth = torch.log(distance.clamp(min=1).double() / (n // 2))
        far = n // 2 + (growth / math.log(max_distance) * (n // 2)).long()
        return torch.where(distance < n // 2, distance, far.clamp(max=n - 1))

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _half_not_added(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        far = _steps(distance, n // 2, max_distance).long()
        return torch.where(distance < n // 2, distance, far.clamp(max=n - 1))

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _rounded_up(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        far = n // 2 + _steps(distance, n // 2, max_distance).ceil().long()
        return torch.where(distance < n // 2, distance, far.clamp(max=n - 1))

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _quarter_exact(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        exact = n // 4
        share = _steps(distance, exact, max_distance) / exact
        far = exact + (share * (n - exact)).long()
        return torch.where(distance < exact, distance, far.clamp(max=n - 1))

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _no_minimum(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        far = n // 2 + _steps(distance, n // 2, max_distance).long()
        return torch.where(distance < n // 2, distance, far)

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _last_at_the_maximum(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        share = _steps(distance, n // 2, max_distance) / (n // 2)
        far = n // 2 + (share * (n // 2 - 1) + 1e-9).long()
        return torch.where(distance < n // 2, distance, far.clamp(max=n - 1))

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _even_steps(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        wide = (distance - n // 2) * (n // 2) // (max_distance - n // 2)
        far = (n // 2 + wide).clamp(max=n - 1)
        return torch.where(distance < n // 2, distance, far)

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _all_logarithms(offsets, num_buckets, max_distance, bidirectional):
    def bucket(distance, n):
        share = (1 + distance.double()).log() / math.log(1 + max_distance)
        return (share * n).long().clamp(max=n - 1)

    return _both_ways(offsets, num_buckets, bidirectional, bucket)


def _a_bucket_there_is(got, offsets, num_buckets, max_distance, bidirectional):
    last = num_buckets // (2 if bidirectional else 1) - 1
    past = got[offsets <= 0]
    return bool((past >= 0).all() and (past <= last).all())


T5_BUCKET = Exercise(
    name="t5_bucket",
    stem="relative",
    given="(offsets), whole numbers of any shape, key minus query → whole numbers from "
    "0 to num_buckets - 1, same shape",
    right=_t5,
    draw=_offsets,
    constants={
        "num_buckets": (32, 24, 48),
        "max_distance": (128, 100, 200),
        "bidirectional": (False, True),
    },
    proved="near ones exact, far ones in wider steps, both signs, up to three times "
    "{max_distance}",
    properties=(
        Property(
            "a bucket of the past is outside those that the past has.",
            _a_bucket_there_is,
        ),
    ),
    slips=(
        Slip(
            "turned",
            "The sign is turned: offsets are key minus query, so the past is below 0.",
            _turned,
        ),
        Slip(
            "other form",
            "It is the other form: bidirectional is {bidirectional} here. Causal, the "
            "past has all buckets; else each direction has half.",
            _other_form,
        ),
        Slip(
            "past and future alike",
            "The future shares the buckets of the past. Causal, it has bucket 0; "
            "bidirectional, the upper half.",
            _past_and_future_alike,
        ),
        Slip(
            "no logarithm",
            "Each distance has its own bucket until they are used up; from half of "
            "them on, steps grow with the logarithm.",
            _no_logarithm,
        ),
        Slip(
            "rounded",
            "Steps are rounded to the nearest; cut the fraction off.",
            _rounded,
        ),
        Slip(
            "rounded up",
            "Steps are rounded up; cut the fraction off.",
            _rounded_up,
        ),
        Slip(
            "not over the exact ones",
            "The logarithm starts at distance 1; divide distance and max_distance by "
            "the number of exact buckets first.",
            _not_over_exact,
        ),
        Slip(
            "maximum not over the exact ones",
            "Far buckets are too wide: divide max_distance by n / 2 first, as the "
            "distance, with n the buckets of its direction.",
            _maximum_not_over_exact,
        ),
        Slip(
            "half not added",
            "Far distances begin again at bucket 0; add the exact ones, n / 2 of them.",
            _half_not_added,
        ),
        Slip(
            "quarter exact",
            "Too few buckets hold one distance each: it is half of those that a "
            "direction has, not a quarter.",
            _quarter_exact,
        ),
        Slip(
            "no minimum",
            "Distances past {max_distance} leave the buckets of their direction; the "
            "last of these takes all.",
            _no_minimum,
        ),
        Slip(
            "last at the maximum",
            "The last bucket opens at {max_distance}: one step too few. At "
            "{max_distance} the logarithm is past the last bucket, which opens before.",
            _last_at_the_maximum,
        ),
        Slip(
            "even steps",
            "Far buckets are all equally wide; they grow with the logarithm.",
            _even_steps,
        ),
        Slip(
            "all logarithms",
            "Near distances share buckets; the first half of them holds one each.",
            _all_logarithms,
        ),
    ),
)

# relative_shift(x) -> what each query has for each key


def _a_column_each(generator, size, order):
    queries, keys = 4 + size, 6 + 3 * size + whole(generator, 0, 2)
    shape = 2 + size % 2, queries, queries + keys - 1
    return (torch.randn(shape, generator=generator),)


def _taken(x, column):
    """Take ``column`` of (query, key) in each row of ``x``, columns rising."""
    queries = x.shape[-2]
    keys = x.shape[-1] - queries + 1
    index = column(torch.arange(queries)[:, None], torch.arange(keys), queries - 1)
    return x.gather(-1, (index % x.shape[-1]).expand(len(x), queries, keys))


def _columns_rising(x, order):
    return x if order == ORDERS[0] else x.flip(-1)


def _shifted(x, order):
    return _taken(_columns_rising(x, order), lambda i, j, last: j - i + last)


def _first_columns(x, order):
    return x[..., : x.shape[-1] - x.shape[-2] + 1]


def _first_row_for_all(x, order):
    return _taken(_columns_rising(x, order), lambda i, j, last: j + last + 0 * i)


def _wrong_way(x, order):
    return _taken(_columns_rising(x, order), lambda i, j, last: j + i)


def _one_too_far(x, order):
    x = _columns_rising(x, order)
    queries, columns = x.shape[-2:]
    moved = x.flatten(-2)[..., queries:].unflatten(-1, (queries, columns - 1))
    return moved[..., : columns - queries + 1]


def _columns_reversed(x, order):
    return _shifted(x.flip(-1), order)


def _no_future(x, order):
    return _shifted(x, order).tril(x.shape[-1] - 2 * x.shape[-2] + 1)


def _next_row_too(x, order):
    x = _columns_rising(x, order)
    queries, columns = x.shape[-2:]
    padded = torch.nn.functional.pad(x, (1, 0)).flatten(-2)
    moved = padded[..., queries:].unflatten(-1, (queries, columns))
    return moved[..., queries - 1 :]


def _of_its_own_row(got, x, order):
    same = (got.double()[..., None] - x.double()[..., None, :]).abs() < 1e-4
    return bool(same.any(-1).all())


RELATIVE_SHIFT = Exercise(
    name="relative_shift",
    stem="relative",
    given="(x), (heads, query, query + key - 1), a column for each offset in order → "
    "(heads, query, key); the queries are the last of the keys",
    right=_shifted,
    draw=_a_column_each,
    constants={"order": ORDERS},
    proved="past and future from the query's own row, columns counted by {order}",
    properties=(
        Property(
            "some numbers are not of this query's row. Is the future masked? Nothing "
            "is, here.",
            _of_its_own_row,
        ),
    ),
    slips=(
        Slip(
            "first columns",
            "Nothing is shifted: every row has its first columns. One column is one "
            "offset, and each query has others for the same keys.",
            _first_columns,
        ),
        Slip(
            "first row for all",
            "Every row is moved as the first is; the start moves on by one column with "
            "each query.",
            _first_row_for_all,
        ),
        Slip(
            "wrong way",
            "Rows slide the wrong way: for a later query the same key lies farther "
            "back.",
            _wrong_way,
        ),
        Slip(
            "one too far",
            "Each row is one column too far. The first query has query - 1 columns "
            "that it does not need: cut no more.",
            _one_too_far,
        ),
        Slip(
            "columns reversed",
            "Past and future have changed places: columns rise with {order} here.",
            _columns_reversed,
        ),
        Slip(
            "no future",
            "The future is 0, as if the mask were part of the shift; these are scores, "
            "and 0 is no mask.",
            _no_future,
        ),
        Slip(
            "next row too",
            "The last columns are kept, into which the next query's numbers have "
            "slipped. Keep the first.",
            _next_row_too,
        ),
    ),
)

# last_bucket_opens() -> distance


def _opens(num_buckets, max_distance):
    bucket = _t5(-torch.arange(max_distance + 1), num_buckets, max_distance, False)
    return int((bucket == num_buckets - 1).nonzero()[0])


def _at_the_maximum(num_buckets, max_distance):
    return max_distance


def _last_of_the_one_before(num_buckets, max_distance):
    return _opens(num_buckets, max_distance) - 1


def _both_directions(num_buckets, max_distance):
    return _opens(num_buckets // 2, max_distance)


def _bucket_before(num_buckets, max_distance):
    bucket = _t5(-torch.arange(max_distance + 1), num_buckets, max_distance, False)
    return int((bucket == num_buckets - 2).nonzero()[0])


def _evenly(num_buckets, max_distance):
    exact = num_buckets // 2
    return exact + math.ceil((exact - 1) * (max_distance - exact) / exact)


def _from_distance_one(num_buckets, max_distance):
    return math.ceil(max_distance ** ((num_buckets - 1) / num_buckets))


def _its_number(num_buckets, max_distance):
    return num_buckets - 1


LAST_BUCKET_OPENS = Exercise(
    name="last_bucket_opens",
    stem="relative",
    given="() → the first distance of the last bucket, T5 in its causal form with "
    "`num_buckets` and `max_distance`",
    right=_opens,
    constants={"num_buckets": (16, 20, 24), "max_distance": (200, 160, 300)},
    proved="one step of the logarithm before {max_distance}",
    slips=(
        Slip(
            "at the maximum",
            "There the logarithm reaches num_buckets, and the last bucket is "
            "num_buckets - 1: one step earlier.",
            _at_the_maximum,
        ),
        Slip(
            "last of the one before",
            "That is the last distance of the bucket before. Round up, not down.",
            _last_of_the_one_before,
        ),
        Slip(
            "both directions",
            "That is right for half of the buckets, as in the bidirectional form; "
            "causal, the past has all.",
            _both_directions,
        ),
        Slip(
            "bucket before",
            "That opens the bucket before the last. Buckets count from 0, so the last "
            "is num_buckets - 1.",
            _bucket_before,
        ),
        Slip(
            "evenly",
            "That would be right for steps of equal width; each is wider than the one "
            "before, by the same factor.",
            _evenly,
        ),
        Slip(
            "from distance one",
            "There the logarithm would start at distance 1; it starts behind the exact "
            "half of the buckets.",
            _from_distance_one,
        ),
        Slip(
            "its number",
            "That is the number of the last bucket; a distance is asked.",
            _its_number,
        ),
    ),
)

EXERCISES = (
    SHAW_INDEX,
    SHAW_SCORES,
    T5_BUCKET,
    RELATIVE_SHIFT,
    LAST_BUCKET_OPENS,
)
