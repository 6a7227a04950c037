"""Slips of the stem rope: pairs, angles, sense of rotation, rows, places."""

import math

import torch

from coursekit.rope import adjacent_from_halves, apply_partial_rope, apply_rope
from coursekit.sinusoidal import position_angles
from coursekit.slips.exercise import Exercise, Property, Slip, whole, wholes
from coursekit.slips.sinusoidal import (
    BASES,
    doubled_exponent,
    growing,
    halved_exponent,
    last_is_one,
    tenth_of_base,
)

# apply_rope(x, positions) -> x with adjacent pairs turned


def _x_and_positions(generator, size, base):
    """Draw features and positions in any order; position 0 is among them."""
    length = whole(generator, 5 + 3 * size, 8 + 3 * size)
    width = 2 * whole(generator, 3 + 2 * size, 7 + 2 * size)
    positions = wholes(generator, 2, 40, length)
    positions[whole(generator, 1, length)] = 0
    return torch.randn(length, width, generator=generator), positions


def _rope(x, positions, base):
    return apply_rope(x, position_angles(positions, x.shape[-1], base))


def _with(frequencies):
    """Turn by other frequencies."""
    return lambda x, positions, base: apply_rope(
        x, positions[:, None] * frequencies(x.shape[-1], base).double()
    )


def _clockwise(x, positions, base):
    return _rope(x, -positions, base)


def _swapped(x, positions, base):
    return apply_rope(x, torch.pi / 2 - position_angles(positions, x.shape[-1], base))


def _by_halves(x, angles):
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


def _halves(x, positions, base):
    angles = position_angles(positions, x.shape[-1], base)
    return _by_halves(x, angles.repeat(1, 2))


def _mixed_layouts(x, positions, base):
    angles = position_angles(positions, x.shape[-1], base)
    return _by_halves(x, angles.repeat_interleave(2, dim=-1))


def _joined_behind(x, positions, base):
    return torch.cat(_rope(x, positions, base).unflatten(-1, (-1, 2)).unbind(-1), -1)


def _overwritten(x, positions, base):
    angles = position_angles(positions, x.shape[-1], base)
    even = x[:, 0::2] * angles.cos() - x[:, 1::2] * angles.sin()
    odd = even * angles.sin() + x[:, 1::2] * angles.cos()
    return torch.stack((even, odd), dim=-1).flatten(-2)


def _by_index(x, positions, base):
    return _rope(x, torch.arange(len(x)), base)


def _from_one(x, positions, base):
    return _rope(x, positions + 1, base)


def _still_at_zero(got, x, positions, base):
    still = positions == 0
    return torch.allclose(got[still], x[still].double(), atol=1e-4)


def _keeps_lengths(got, x, positions, base):
    return torch.allclose(got.norm(dim=-1), x.norm(dim=-1).double(), atol=1e-3)


APPLY_ROPE = Exercise(
    name="apply_rope",
    stem="rope",
    given="(x, positions), x (length, head_dim) and a row of any positions → x with "
    "adjacent pairs turned",
    right=_rope,
    draw=_x_and_positions,
    constants={"base": BASES},
    proved="position 0 stays, adjacent pairs turn by any positions",
    properties=(
        Property("a rotation must keep the length of each row.", _keeps_lengths),
        Property(
            "position 0 moved, but angle 0 must leave x as it is.", _still_at_zero
        ),
    ),
    slips=(
        Slip(
            "tenth of the base",
            "The base looks ten times too small; it is {base:.0f} here.",
            _with(tenth_of_base),
        ),
        Slip(
            "doubled exponent",
            "The exponent is doubled: arange(0, d, 2) already counts features, so do "
            "not multiply by 2 again.",
            _with(doubled_exponent),
        ),
        Slip(
            "halved exponent",
            "The exponent is halved: use 2i/d for pair i, not i/d.",
            _with(halved_exponent),
        ),
        Slip(
            "growing",
            "The minus sign of the exponent is lost, so frequencies grow.",
            _with(growing),
        ),
        Slip(
            "last is one",
            "The exponent runs to 1 (division by d/2 - 1), a convention of other "
            "code; the paper divides by d/2.",
            _with(last_is_one),
        ),
        Slip(
            "clockwise",
            "It turns clockwise: the minus belongs to a·cos - b·sin.",
            _clockwise,
        ),
        Slip(
            "cosine and sine swapped",
            "Cosine and sine have changed places.",
            _swapped,
        ),
        Slip(
            "joined behind",
            "The turn is right, but the first of all pairs stand in front and the "
            "second behind; stack and flatten puts each pair side by side again.",
            _joined_behind,
        ),
        Slip(
            "overwritten",
            "The second of a pair is made from the new first one; both need the old. "
            "Keep what you overwrite.",
            _overwritten,
        ),
        Slip(
            "pairs of halves",
            "It pairs feature i with i + head_dim/2; here 2i and 2i + 1 are a pair.",
            _halves,
        ),
        Slip(
            "mixed layouts",
            "Angles are laid out for adjacent pairs, partners for halves: that is no "
            "rotation, and lengths change.",
            _mixed_layouts,
        ),
        Slip(
            "by index",
            "Rows are counted 0, 1, 2, …; use the positions that are given.",
            _by_index,
        ),
        Slip(
            "from one",
            "Each position is one too large. Do you count from 1?",
            _from_one,
        ),
    ),
)

# rope_scores(query, key, query_positions, key_positions) -> scores


def _query_and_key(generator, size, base):
    """Draw features and positions; the first query and key are moved on together."""
    queries = whole(generator, 4 + 5 * size, 6 + 5 * size)
    keys = whole(generator, 6 + 5 * size, 9 + 5 * size)
    width = 2 * whole(generator, 3 + 2 * size, 5 + 2 * size)
    query = torch.randn(queries, width, generator=generator)
    key = torch.randn(keys, width, generator=generator)
    places = wholes(generator, 5, 60, queries), wholes(generator, 5, 60, keys)
    step = whole(generator, 3, 30)
    for x, positions in zip((query, key), places, strict=True):
        x[1], positions[1] = x[0], positions[0] + step
    return query, key, *places


def _scores(turn_query, turn_key=None):
    """Score with query and key turned by functions of (x, positions, base)."""

    def scores(query, key, query_positions, key_positions, base):
        turned = turn_query(query, query_positions, base)
        others = (turn_key or turn_query)(key, key_positions, base)
        return turned.double() @ others.double().mT / query.shape[-1] ** 0.5

    return scores


def _as_it_was(x, positions, base):
    return x


def _halves_clockwise(x, positions, base):
    return _halves(x, -positions, base)


def _degrees(x, positions, base):
    return _rope(x, positions * (math.pi / 180), base)


def _not_divided(query, *rest, base):
    return _scores(_rope)(query, *rest, base=base) * query.shape[-1] ** 0.5


def _moved_together(got, query, key, query_positions, key_positions, base):
    return bool((got[0, 0] - got[1, 1]).abs() < 1e-3)


ROPE_SCORES = Exercise(
    name="rope_scores",
    stem="rope",
    given="(query, key, query_positions, key_positions), query (query, head_dim) and "
    "key (key, head_dim) → (query, key) scores, divided by √head_dim",
    right=_scores(_rope),
    draw=_query_and_key,
    constants={"base": BASES},
    conventions={
        "adjacent pairs, clockwise": _scores(_clockwise),
        "pairs of halves": _scores(_halves),
        "pairs of halves, clockwise": _scores(_halves_clockwise),
    },
    proved="only the offset counts, in the pairing and the sense of your choice",
    properties=(
        Property(
            "a query and a key that move on together must keep their score.",
            _moved_together,
        ),
    ),
    slips=(
        Slip(
            "query alone",
            "Only the query turns; the key must turn by its own position, too.",
            _scores(_rope, _as_it_was),
        ),
        Slip(
            "key alone",
            "Only the key turns; the query must turn by its own position, too.",
            _scores(_as_it_was, _rope),
        ),
        Slip(
            "opposite senses",
            "Query and key turn in opposite senses, so positions add up. Turn both "
            "the same way: then the difference is left.",
            _scores(_rope, _clockwise),
        ),
        Slip(
            "different pairings",
            "Query and key use different pairings.",
            _scores(_rope, _halves),
        ),
        Slip(
            "not turned",
            "Nothing turns: a score is the same at all positions.",
            _scores(_as_it_was),
        ),
        Slip(
            "queries from zero",
            "Queries are counted 0, 1, 2, …; use the positions that are given, as a "
            "decode step must.",
            _scores(_by_index, _rope),
        ),
        Slip(
            "by index",
            "Queries and keys are both counted 0, 1, 2, …; use the positions that are "
            "given.",
            _scores(_by_index),
        ),
        Slip(
            "mixed layouts",
            "Angles are laid out for adjacent pairs, partners for halves: that is no "
            "rotation. Use repeat_interleave with one, repeat with the other.",
            _scores(_mixed_layouts),
        ),
        Slip(
            "degrees",
            "Angles are taken as degrees; sin and cos want radians.",
            _scores(_degrees),
        ),
        Slip(
            "tenth of the base",
            "The base looks ten times too small; it is {base:.0f} here.",
            _scores(_with(tenth_of_base)),
        ),
        Slip(
            "halved exponent",
            "The exponent is halved: use 2i/d for pair i, not i/d.",
            _scores(_with(halved_exponent)),
        ),
        Slip(
            "growing",
            "The minus sign of the exponent is lost, so frequencies grow.",
            _scores(_with(growing)),
        ),
        Slip(
            "not divided",
            "The scores are not divided by √head_dim.",
            _not_divided,
        ),
    ),
)

# convert_weight(weight, num_heads) -> the rows of W_q or W_k in the order of the other
# pairing, `to`


def _weight(generator, size, to):
    """Draw a weight with other columns than rows, as that of grouped keys."""
    heads = 2 + size
    head_dim = 2 * whole(generator, 4 + 2 * size, 6 + 2 * size)
    rows = heads * head_dim
    return torch.randn(rows, 2 * rows, generator=generator), heads


def _index(width, to):
    index = adjacent_from_halves(width)
    return index if to == "adjacent" else index.argsort()


def _by_head(reorder):
    """Reorder the rows of each head, (heads, head_dim, columns)."""
    return lambda weight, num_heads, to: reorder(
        weight.unflatten(0, (num_heads, -1)), to
    ).flatten(0, 1)


def _rows_moved(heads, to):
    return heads[:, _index(heads.shape[1], to)]


def _other_way(heads, to):
    return heads[:, _index(heads.shape[1], to).argsort()]


def _second_first(heads, to):
    first, second = _rows_moved(heads, "halves").chunk(2, dim=1)
    if to == "halves":
        return torch.cat((second, first), dim=1)
    first, second = heads.chunk(2, dim=1)
    return torch.stack((second, first), dim=2).flatten(1, 2)


def _neighbours_swapped(heads, to):
    return heads.unflatten(1, (-1, 2)).flip(2).flatten(1, 2)


def _half_rotated(heads, to):
    first, second = heads.chunk(2, dim=1)
    return torch.cat((-second, first), dim=1)


def _first_head_alone(heads, to):
    return torch.cat((_rows_moved(heads[:1], to), heads[1:]))


def _all_rows_at_once(weight, num_heads, to):
    return weight[_index(len(weight), to)]


def _columns_moved(weight, num_heads, to):
    return _by_head(_rows_moved)(weight.T, num_heads, to).T


def _heads_inside(weight, num_heads, to):
    rows = weight.unflatten(0, (-1, num_heads))
    return rows[_index(len(rows), to)].flatten(0, 1)


def _nothing_moved(weight, num_heads, to):
    return weight


def _marks(weight):
    """Give each row one number that tells it from the others."""
    return weight.double() @ torch.arange(1, weight.shape[-1] + 1).double()


def _same_rows(got, weight, num_heads, to):
    before, after = _marks(weight).sort().values, _marks(got).sort().values
    return torch.allclose(after, before, atol=1e-3)


def _same_heads(got, weight, num_heads, to):
    both = (_marks(x).unflatten(0, (num_heads, -1)) for x in (got, weight))
    after, before = (x.sort(-1).values for x in both)
    return torch.allclose(after, before, atol=1e-3)


CONVERT_WEIGHT = Exercise(
    name="convert_weight",
    stem="rope",
    given="(weight, num_heads), weight (num_heads · head_dim, d_model) → the same rows "
    "in the order of the other pairing",
    right=_by_head(_rows_moved),
    draw=_weight,
    constants={"to": ("adjacent", "halves")},
    proved="rows moved head by head, into the order of the pairing named {to}",
    properties=(
        Property("rows must be the old ones in another order.", _same_rows),
        Property("a row must stay in its head.", _same_heads),
    ),
    slips=(
        Slip(
            "other way",
            "It goes the other way; here rows must end in the order of {to} pairs. "
            "argsort turns an index round.",
            _by_head(_other_way),
        ),
        Slip(
            "all rows at once",
            "All rows are reordered as one long head: cut them into num_heads heads "
            "first.",
            _all_rows_at_once,
        ),
        Slip(
            "columns",
            "Columns moved. A feature of a query is a row of the weight, (out, in).",
            _columns_moved,
        ),
        Slip(
            "heads inside",
            "Rows are cut as (head_dim, num_heads); the rows of one head follow each "
            "other: (num_heads, head_dim).",
            _heads_inside,
        ),
        Slip(
            "nothing moved",
            "The rows are where they were.",
            _nothing_moved,
        ),
        Slip(
            "second first",
            "The second feature of each pair stands where the first belongs, so it "
            "would turn the other way.",
            _by_head(_second_first),
        ),
        Slip(
            "neighbours swapped",
            "Rows 2i and 2i + 1 have changed places; pairs of the other kind must "
            "come together or part.",
            _by_head(_neighbours_swapped),
        ),
        Slip(
            "rotate_half",
            "That is rotate_half, one part of a rotation. Here rows only move, and "
            "no sign changes.",
            _by_head(_half_rotated),
        ),
        Slip(
            "first head alone",
            "Only the first head is reordered; each of them must be.",
            _by_head(_first_head_alone),
        ),
    ),
)

# decode_scores(query, key, cached_keys) -> scores of a new token; only the first
# `share` of the features turn


def _step(generator, size, base, share):
    """Draw a new token and a cache of keys that are turned by their place."""
    heads, length = 2 + size, whole(generator, 5 + 4 * size, 9 + 4 * size)
    width = 8 * (2 + size)
    query = torch.randn(heads, 1, width, generator=generator)
    key = torch.randn(heads, 1, width, generator=generator)
    keys = torch.randn(heads, length, width, generator=generator)
    return query, key, _first_turned(keys, torch.arange(length), base, share)


def _first_turned(x, positions, base, share):
    turning = round(share * x.shape[-1])
    return apply_partial_rope(x, position_angles(positions, turning, base))


def _decoded(turn_query=_first_turned, turn_key=None, late=0):
    """Score one step, with the turns given, ``late`` positions after its place."""

    def scores(query, key, cached, base, share):
        place = torch.tensor([cached.shape[1] + late])
        turned = turn_query(query, place, base, share)
        last = (turn_key or turn_query)(key, place, base, share)
        return _against(turned, torch.cat((cached, last), dim=1))

    return scores


def _against(query, keys):
    return query.double() @ keys.double().mT / query.shape[-1] ** 0.5


def _at_zero(x, positions, base, share):
    return x


def _whole_head(x, positions, base, share):
    return _rope(x, positions, base)


def _frequencies_of_the_head(x, positions, base, share):
    angles = position_angles(positions, x.shape[-1], base)
    return apply_partial_rope(x, angles[:, : round(share * x.shape[-1] / 2)])


def _last_turned(x, positions, base, share):
    still = x.shape[-1] - round(share * x.shape[-1])
    return torch.cat((x[..., :still], _rope(x[..., still:], positions, base)), dim=-1)


def _first_halves(x, positions, base, share):
    turning = round(share * x.shape[-1])
    turned = _halves(x[..., :turning], positions, base)
    return torch.cat((turned, x[..., turning:]), dim=-1)


def _halves_of_the_head(x, positions, base, share):
    width = x.shape[-1]
    angles = torch.zeros(1, width // 2).double()
    some = position_angles(positions, round(share * width), base)
    angles[:, : some.shape[1]] = some
    return _by_halves(x, angles.repeat(1, 2))


def _cache_turned_again(query, key, cached, base, share):
    again = _first_turned(cached, torch.arange(cached.shape[1]), base, share)
    return _decoded()(query, key, again, base, share)


def _new_key_first(query, key, cached, base, share):
    return _decoded()(query, key, cached, base, share).roll(1, dims=-1)


def _without_itself(query, key, cached, base, share):
    return _decoded()(query, key, cached, base, share)[..., :-1]


def _root_of_turning(query, key, cached, base, share):
    return _decoded()(query, key, cached, base, share) / share**0.5


def _scores_itself_alike(got, query, key, cached, base, share):
    own = _against(query, key)[..., 0]
    return torch.allclose(got[..., -1], own, atol=1e-3)


DECODE_SCORES = Exercise(
    name="decode_scores",
    stem="rope",
    given="(query, key, cached_keys), (heads, 1, head_dim) twice and (heads, length, "
    "head_dim), turned at 0 … length - 1 → (heads, 1, length + 1) scores",
    right=_decoded(),
    draw=_step,
    constants={"base": BASES, "share": (0.5, 0.25)},
    proved="the step stands after its cache, and the first {share:.0%} of the features "
    "turn",
    properties=(
        Property(
            "a token scores itself, last, as without positions: both turn alike.",
            _scores_itself_alike,
        ),
    ),
    slips=(
        Slip(
            "at zero",
            "The step starts at 0 again. Its position is the number of tokens in the "
            "cache.",
            _decoded(_at_zero),
        ),
        Slip(
            "one too late",
            "The step is one position too late: after 0 … length - 1 comes length.",
            _decoded(late=1),
        ),
        Slip(
            "one too early",
            "The step stands where the last cached token is; it comes one later.",
            _decoded(late=-1),
        ),
        Slip(
            "new key not turned",
            "The new key did not turn; cached keys did, and so must this one.",
            _decoded(_first_turned, _at_zero),
        ),
        Slip(
            "cache turned again",
            "The cached keys are turned a second time; they were turned when they "
            "came.",
            _cache_turned_again,
        ),
        Slip(
            "whole head",
            "The whole head turns; the first {share:.0%} of its features do here.",
            _decoded(_whole_head),
        ),
        Slip(
            "frequencies of the head",
            "The exponent counts the whole head; with r features that turn, pair i "
            "has 2i/r.",
            _decoded(_frequencies_of_the_head),
        ),
        Slip(
            "halves of the head",
            "Partners are half a head apart, so features turn that should be still. "
            "Cut off the part that turns first.",
            _decoded(_halves_of_the_head),
        ),
        Slip(
            "pairs of halves",
            "The new token turns in pairs of halves, but the cached keys in adjacent "
            "pairs.",
            _decoded(_first_halves),
        ),
        Slip(
            "last features",
            "The last features turn; here it is the first {share:.0%}.",
            _decoded(_last_turned),
        ),
        Slip(
            "new key first",
            "The new key stands before the cached ones; it comes last.",
            _new_key_first,
        ),
        Slip(
            "without itself",
            "The new key is missing: a token attends to itself, too. Append it to the "
            "cache first.",
            _without_itself,
        ),
        Slip(
            "root of turning",
            "The scores are divided by the root of what turns; all features are in "
            "the product: √head_dim.",
            _root_of_turning,
        ),
    ),
)

# smallest_base() -> number


def _base_for(turn, exponent):
    """Solve length · base^-exponent = turn for the base."""
    return lambda head_dim, length: (length / turn) ** (1 / exponent(head_dim))


def _last_pair(head_dim):
    return (head_dim - 2) / head_dim


def _last_but_one(head_dim):
    return (head_dim - 4) / head_dim


SMALLEST_BASE = Exercise(
    name="smallest_base",
    stem="rope",
    given="() → the smallest base with which the slowest pair of `head_dim` features "
    "stays within one turn over `length` positions, to 1 %",
    right=_base_for(2 * math.pi, _last_pair),
    constants={"head_dim": (128, 64, 80), "length": (8_192, 32_768, 4_096)},
    relative=True,
    tolerance=0.01,
    proved="the slowest pair turns by base^(-(d - 2)/d) each step, a turn is 2π",
    slips=(
        Slip(
            "one radian",
            "That keeps the slowest pair within one radian; a turn is 2π.",
            _base_for(1, _last_pair),
        ),
        Slip(
            "half a turn",
            "That keeps the slowest pair within half a turn; a turn is 2π.",
            _base_for(math.pi, _last_pair),
        ),
        Slip(
            "degrees",
            "That is for degrees; frequencies are radians per position, and a turn is "
            "2π.",
            _base_for(360, _last_pair),
        ),
        Slip(
            "exponent of one",
            "The slowest pair does not turn at 1/base: pairs count from 0, so the "
            "last exponent is (d - 2)/d.",
            _base_for(2 * math.pi, lambda head_dim: 1),
        ),
        Slip(
            "last but one",
            "That is for the last pair but one; the last of d/2 has index d/2 - 1.",
            _base_for(2 * math.pi, _last_but_one),
        ),
        Slip(
            "halved exponent",
            "The exponent is halved: use 2i/d for pair i, not i/d.",
            _base_for(2 * math.pi, lambda head_dim: _last_pair(head_dim) / 2),
        ),
        Slip(
            "doubled exponent",
            "The exponent is doubled: it is 2i/d for pair i, so nearly 1 for the last.",
            _base_for(2 * math.pi, lambda head_dim: _last_pair(head_dim) * 2),
        ),
    ),
)

EXERCISES = (APPLY_ROPE, ROPE_SCORES, CONVERT_WEIGHT, DECODE_SCORES, SMALLEST_BASE)
