"""Slips of the stem alibi: slopes, signs, distances, roots, a feature that folds."""

import math

import torch

from coursekit.alibi import alibi_slopes, geometric_slopes, kerple_bias
from coursekit.slips.exercise import Exercise, Property, Slip, whole

# alibi_slopes(num_heads) -> slopes; the first series ends at 2^-end

_HEADS = ((6, 7, 10, 12, 14), (20, 23), (24, 26), (16, 32), (40, 42))


def _num_heads(generator, size, end):
    """Draw a number of heads that is no power of two, but for one hidden size."""
    heads = _HEADS[size]
    return (heads[whole(generator, 0, len(heads))],)


def _slopes(num_heads, end):
    return alibi_slopes(num_heads, torch.float64) ** (end / 8)


def _series(num_heads, end):
    """Give the paper's text, right for a power of two alone."""
    return geometric_slopes(num_heads, torch.float64) ** (end / 8)


def _below(num_heads):
    return 2 ** (num_heads.bit_length() - 1)


def _from_zero(num_heads, end):
    below = _below(num_heads)
    both = [2 ** (end / h) * _series(h, end) for h in (below, 2 * below)]
    return torch.cat((both[0], both[1][::2][: num_heads - below]))


def _growing(num_heads, end):
    return 1 / _slopes(num_heads, end)


def _negative(num_heads, end):
    return -_slopes(num_heads, end)


def _in_order(num_heads, end):
    return _slopes(num_heads, end).sort(descending=True).values


def _cut_from_above(num_heads, end):
    return _series(1 << (num_heads - 1).bit_length(), end)[:num_heads]


def _again_from_the_start(num_heads, end):
    below = _series(_below(num_heads), end)
    return torch.cat((below, below))[:num_heads]


def _nothing_skipped(num_heads, end):
    below = _below(num_heads)
    extra = _series(2 * below, end)[: num_heads - below]
    return torch.cat((_series(below, end), extra))


def _last_ones(num_heads, end):
    below = _below(num_heads)
    extra = _series(2 * below, end)[::2][2 * below - num_heads :]
    return torch.cat((_series(below, end), extra))


def _extra_in_front(num_heads, end):
    return _slopes(num_heads, end).roll(num_heads - _below(num_heads))


def _powers_of_e(num_heads, end):
    return _slopes(num_heads, end) ** (1 / math.log(2))


ALIBI_SLOPES = Exercise(
    name="alibi_slopes",
    stem="alibi",
    given="(num_heads), any number → (num_heads,) slopes above 0, in the order of the "
    "authors' code",
    right=_slopes,
    draw=_num_heads,
    constants={"end": (8, 4, 6)},
    relative=True,
    proved="a series that ends at 2^-{end}, then every second slope of its double",
    properties=(
        Property(
            "a slope must lie between 0 and 1, both excluded.",
            lambda got, num_heads, end: bool(((got > 0) & (got < 1)).all()),
        ),
    ),
    slips=(
        Slip(
            "text of the paper",
            "That is one even series, as the paper's text has it. The code takes the "
            "power of two below, then every second slope of its double.",
            _series,
        ),
        Slip(
            "from zero",
            "Exponents start at 0: heads are counted from 1 here, so the first of 8 "
            "has 2^(-{end}/8).",
            _from_zero,
        ),
        Slip(
            "growing",
            "The minus sign of the exponent is lost, so slopes grow.",
            _growing,
        ),
        Slip(
            "negative",
            "The slopes are negative; the minus belongs to the bias.",
            _negative,
        ),
        Slip(
            "sorted",
            "The slopes are right but sorted. A checkpoint wants the extra ones last.",
            _in_order,
        ),
        Slip(
            "cut from above",
            "That is the series of the power of two above, cut off; start from the "
            "one below.",
            _cut_from_above,
        ),
        Slip(
            "again from the start",
            "The extra heads repeat slopes that others have; they take those of "
            "the double that lie between.",
            _again_from_the_start,
        ),
        Slip(
            "nothing skipped",
            "The extra heads take every slope of the double; skip every second: [::2].",
            _nothing_skipped,
        ),
        Slip(
            "last ones",
            "The extra heads take the gentlest of every second slope; they take the "
            "steepest, from the start.",
            _last_ones,
        ),
        Slip(
            "extra in front",
            "The extra slopes stand in front; they come after the first series.",
            _extra_in_front,
        ),
        Slip(
            "powers of e",
            "Those are powers of e; slopes are powers of 2.",
            _powers_of_e,
        ),
    ),
)

# alibi_logits(query, key, slopes, query_positions, key_positions) -> logits, judged by
# what a softmax under the causal mask makes of them; a step costs price · slope

PRICES = (1.0, 2.0, 0.5)
_FORM = 1e-3  # the step between the marks of two forms, above the tolerance


def _late_queries(generator, size, price):
    """Draw a cache with gaps, after its first keys, and some late queries."""
    heads, keys, queries = 2 + size, 9 + 3 * size, 3 + size
    steps = torch.randint(1, 4, (keys,), generator=generator)
    steps[: queries + 1], steps[queries + 1] = 1, 3
    positions = steps.cumsum(0) - 1
    query = torch.randn(heads, queries, 6 + 2 * size, generator=generator)
    key = torch.randn(heads, keys, 6 + 2 * size, generator=generator)
    return query, key, _drawn_slopes(generator, heads), positions[-queries:], positions


def _drawn_slopes(generator, heads):
    """Draw slopes that differ between heads by a factor."""
    first = 0.2 + 0.1 * torch.rand((), generator=generator)
    return first * 0.6 ** torch.arange(heads)


def _ahead(queries, keys):
    return keys > queries[:, None]


def _weights_and_form(logits, query, key, slopes, queries, keys):
    """Take the weights under the causal mask, and a last column with the form.

    Softmax cannot tell the forms apart, so the mark of the form, far smaller than
    any weight that matters, says which convention was seen.
    """
    logits = _tensor(logits)
    if logits.shape != (*query.shape[:-1], len(keys)) or logits.dtype.is_complex:
        return logits
    ahead = _ahead(queries, keys)
    bias = logits.double() - _products(query, key) / query.shape[-1] ** 0.5
    form = 0
    if (bias[:, ahead] == -math.inf).all():
        form = 3
    elif torch.allclose(bias, bias[:, :1], atol=1e-4):
        form = 2
    elif (bias[:, ahead] > 1e-4).all():
        form = 1
    weights = logits.double().masked_fill(ahead, -math.inf).softmax(dim=-1)
    mark = torch.full_like(weights[..., :1], form * _FORM)
    return torch.cat((weights, mark), dim=-1)


def _tensor(result):
    """Make a tensor of a result, a reversed or read-only array too."""
    return torch.as_tensor(result.copy() if hasattr(result, "copy") else result)


def _products(query, key):
    return query.double() @ key.double().mT


def _with_bias(bias):
    """Add what a function of (slopes, queries, keys) gives, ``price`` times."""

    def logits(query, key, slopes, queries, keys, price):
        scores = _products(query, key) / query.shape[-1] ** 0.5
        return scores + price * bias(slopes[:, None, None], queries, keys)

    return logits


def _symmetric(slopes, queries, keys):
    return -slopes * (keys - queries[:, None]).abs()


def _signed(slopes, queries, keys):
    return slopes * (keys - queries[:, None])


def _key_only(slopes, queries, keys):
    return slopes * keys


def _future_blocked(slopes, queries, keys):
    bias = _symmetric(slopes, queries, keys)
    return bias.masked_fill(_ahead(queries, keys), -math.inf)


def _sign_turned(slopes, queries, keys):
    return -_symmetric(slopes, queries, keys)


def _no_price(slopes, queries, keys):
    return 0 * _symmetric(slopes, queries, keys)


def _one_slope(slopes, queries, keys):
    return _symmetric(slopes[:1], queries, keys).expand(len(slopes), -1, -1)


def _queries_from_zero(slopes, queries, keys):
    return _symmetric(slopes, torch.arange(len(queries)), keys)


def _keys_by_index(slopes, queries, keys):
    return _symmetric(slopes, queries, torch.arange(len(keys)))


def _both_by_index(slopes, queries, keys):
    return _symmetric(slopes, torch.arange(len(queries)), torch.arange(len(keys)))


def _squared(slopes, queries, keys):
    return -slopes * (keys - queries[:, None]).square()


def _divided_by_slopes(slopes, queries, keys):
    return _symmetric(1 / slopes, queries, keys)


def _bias_divided(query, key, slopes, queries, keys, price):
    bias = price * _symmetric(slopes[:, None, None], queries, keys)
    return (_products(query, key) + bias) / query.shape[-1] ** 0.5


def _scores_not_divided(query, key, slopes, queries, keys, price):
    bias = price * _symmetric(slopes[:, None, None], queries, keys)
    return _products(query, key) + bias


def _after_softmax(query, key, slopes, queries, keys, price):
    weights = _products(query, key) / query.shape[-1] ** 0.5
    bias = price * _symmetric(slopes[:, None, None], queries, keys)
    return weights.masked_fill(_ahead(queries, keys), -math.inf).softmax(-1) + bias


ALIBI_LOGITS = Exercise(
    name="alibi_logits",
    stem="alibi",
    given="(query, key, slopes, query_positions, key_positions), query (heads, query, "
    "head_dim), key (heads, key, head_dim) → (heads, query, key) logits, before a "
    "causal mask",
    right=_with_bias(_symmetric),
    draw=_late_queries,
    view=_weights_and_form,
    constants={"price": PRICES},
    conventions={
        "the future gets a bonus, which the mask hides": _with_bias(_signed),
        "key-only, one row for all queries": _with_bias(_key_only),
        "the future is blocked already": _with_bias(_future_blocked),
    },
    proved="under a causal mask the weights are those of ALiBi, from any cache",
    slips=(
        Slip(
            "sign turned",
            "The sign is turned, so far keys win. Each step must cost, not pay.",
            _with_bias(_sign_turned),
        ),
        Slip(
            "bias divided",
            "The bias is divided by √head_dim, too; add it after the division.",
            _bias_divided,
        ),
        Slip(
            "scores not divided",
            "Query times key is not divided by √head_dim; only the bias goes as it is.",
            _scores_not_divided,
        ),
        Slip(
            "no price",
            "No step costs anything: was one number added to a whole row? A softmax "
            "does not see it.",
            _with_bias(_no_price),
        ),
        Slip(
            "one slope",
            "All heads have the slope of the first; each has its own.",
            _with_bias(_one_slope),
        ),
        Slip(
            "queries from zero",
            "Queries are counted 0, 1, 2, …, but with a cache they come late. Use "
            "query_positions.",
            _with_bias(_queries_from_zero),
        ),
        Slip(
            "keys by index",
            "Keys are counted 0, 1, 2, … although their positions have gaps. Use "
            "key_positions.",
            _with_bias(_keys_by_index),
        ),
        Slip(
            "both by index",
            "Queries and keys are both counted from 0; use the positions that are "
            "given.",
            _with_bias(_both_by_index),
        ),
        Slip(
            "squared",
            "The distance is squared; each step costs the same.",
            _with_bias(_squared),
        ),
        Slip(
            "divided by slopes",
            "The distance is divided by the slope; a slope is the price of a step, "
            "so multiply.",
            _with_bias(_divided_by_slopes),
        ),
        Slip(
            "after the softmax",
            "The bias meets weights, after a softmax; it belongs to the scores, "
            "before it.",
            _after_softmax,
        ),
    ),
)

# fold_alibi(query, key, slopes, key_positions) -> query and key, one feature wider


def _long_texts(generator, size, price):
    """Draw texts past position 256, with gaps; queries are the last of the keys.

    An even and an odd position come first, since half precision has no odd ones here.
    """
    batch, heads, keys, queries = 2 + size % 2, 3 + size, 8 + 2 * size, 4 + size
    steps = torch.randint(1, 4, (keys,), generator=generator)
    steps[0], steps[1], steps[2] = 258 + 2 * whole(generator, 0, 20), 1, 3
    width = 6 + 2 * size
    query = torch.randn(batch, heads, queries, width, generator=generator)
    key = torch.randn(batch, heads, keys, width, generator=generator)
    return query, key, _drawn_slopes(generator, heads), steps.cumsum(0)


_TURNED_PAIR, _ONE_TENSOR, _TWO_WIDTHS = -1.0, -2.0, -3.0  # instead of weights


def _folded_weights(result, query, key, slopes, positions):
    """Attend as torch does by default: √ of the width, here with the causal mask."""
    rows, keys = query[..., 0].numel(), len(positions)
    if getattr(result, "ndim", 0) == 4:
        return torch.full((rows, keys), _ONE_TENSOR).double()
    if not isinstance(result, tuple | list) or len(result) != 2:
        return result
    asks, answers = (_tensor(side).double() for side in result)
    if (asks.shape[-2], answers.shape[-2]) == (keys, query.shape[-2]):
        return torch.full((rows, keys), _TURNED_PAIR).double()
    if asks.shape[-1] != answers.shape[-1]:
        return torch.full((rows, keys), _TWO_WIDTHS).double()
    logits = asks @ answers.mT / asks.shape[-1] ** 0.5
    ahead = _ahead(positions[-query.shape[-2] :], positions)
    return logits.masked_fill(ahead, -math.inf).softmax(dim=-1).flatten(0, -2)


def _fold(query, key, slopes, positions, price, rescaled=None, root=None):
    """Fold with the roots of ``rescaled`` and ``root``, or the right ones."""
    width = query.shape[-1] + 1
    rescaled = (width / (width - 1)) ** 0.5 if rescaled is None else rescaled
    slopes = price * slopes * (width**0.5 if root is None else root)
    asks = slopes[:, None, None].expand(*query.shape[:-1], 1)
    answers = positions.to(key.dtype)[:, None].expand(*key.shape[:-1], 1)
    return torch.cat((query * rescaled, asks), -1), torch.cat((key, answers), -1)


def _no_root(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price, root=1)


def _narrow_root(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price, 1, query.shape[-1] ** 0.5)


def _nothing_rescaled(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price, 1, root=1)


def _query_as_it_was(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price, rescaled=1)


def _divided_before(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price, query.shape[-1] ** -0.5)


def _far_keys_win(query, key, slopes, positions, price):
    return _fold(query, key, -slopes, positions, price)


def _positions_by_index(query, key, slopes, positions, price):
    return _fold(query, key, slopes, torch.arange(len(positions)), price)


def _one_slope_folded(query, key, slopes, positions, price):
    return _fold(query, key, slopes[:1].expand_as(slopes), positions, price)


def _sides_changed(query, key, slopes, positions, price):
    late = positions[-query.shape[-2] :]
    asks, answers = _fold(query, key, slopes, positions, price)
    asks[..., -1] = late * query.shape[-1] ** 0.5
    answers[..., -1] = price * slopes[:, None]
    return asks, answers


def _slope_on_both(query, key, slopes, positions, price):
    asks, answers = _fold(query, key, slopes, positions, price)
    answers[..., -1] *= price * slopes[:, None]
    return asks, answers


def _key_first(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price)[::-1]


def _query_alone(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price)[0]


def _one_side_wider(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions, price)[0], key


def _rounded(query, key, slopes, positions, price):
    return _fold(query, key, slopes, positions.bfloat16(), price)


FOLD_ALIBI = Exercise(
    name="fold_alibi",
    stem="alibi",
    given="(query, key, slopes, key_positions), query and key (batch, heads, length, "
    "head_dim) → a query and a key with head_dim + 1 features, for attention that "
    "divides by √(head_dim + 1)",
    right=_fold,
    draw=_long_texts,
    view=_folded_weights,
    constants={"price": PRICES},
    proved="one more feature gives ALiBi's weights under torch's own scale",
    slips=(
        Slip(
            "no root",
            "The slope will be divided by √(head_dim + 1), too: multiply it by that "
            "first.",
            _no_root,
        ),
        Slip(
            "narrow root",
            "That would be right if one divided by √head_dim. The vectors are wider "
            "now: √(head_dim + 1).",
            _narrow_root,
        ),
        Slip(
            "nothing rescaled",
            "Both are divided by √(head_dim + 1) now: multiply the slope by that, and "
            "the query by √((head_dim + 1) / head_dim).",
            _nothing_rescaled,
        ),
        Slip(
            "query as it was",
            "The slope is right, but query times key is divided by √(head_dim + 1) "
            "instead of √head_dim. Rescale the query.",
            _query_as_it_was,
        ),
        Slip(
            "divided before",
            "The query is divided by √head_dim already, and the attention divides "
            "again.",
            _divided_before,
        ),
        Slip(
            "far keys win",
            "The sign is turned: with -m·j far keys win. Late keys are near, so m·j "
            "must grow.",
            _far_keys_win,
        ),
        Slip(
            "by index",
            "Keys are counted 0, 1, 2, … although their positions have gaps. Use "
            "key_positions.",
            _positions_by_index,
        ),
        Slip(
            "one slope",
            "All heads ask with the slope of the first; each has its own.",
            _one_slope_folded,
        ),
        Slip(
            "sides changed",
            "No step costs anything. A position with the query, a slope with the key "
            "are a constant of the row, unseen by softmax: change sides.",
            _sides_changed,
        ),
        Slip(
            "slope on both",
            "Query and key both carry the slope, so it is squared. One of them is "
            "enough.",
            _slope_on_both,
        ),
        Slip(
            "rounded",
            "Positions are rounded to half precision, where 257 does not exist. Keep "
            "them in float32.",
            _rounded,
        ),
        Slip(
            "key first",
            "A pair is expected, query first, then key; here they have changed places.",
            _key_first,
        ),
        Slip(
            "one tensor",
            "One tensor came back; return both: query, key.",
            _query_alone,
        ),
        Slip(
            "one side wider",
            "Query and key differ in width; each gets one feature more.",
            _one_side_wider,
        ),
    ),
)

# kerple_bias(scale, rate, query_positions, key_positions) -> bias, `price` times the
# paper's


def _learned(generator, size, price):
    """Draw what two numbers of each head may have become, and positions."""
    heads, queries, keys = 2 + size, 4 + 3 * size, 6 + 3 * size
    scale, rate = 0.5 + torch.rand(2, heads, generator=generator)
    rate[0] = 2 * scale[0] + 1
    row = torch.randperm(2 * keys, generator=generator)[:keys] + 3
    return scale, rate, row[torch.randperm(keys, generator=generator)[:queries]], row


def _logarithmic(scale, rate, queries, keys, price):
    return price * kerple_bias(scale.double(), rate, queries, keys)


def _past_alone(scale, rate, queries, keys, price):
    bias = _logarithmic(scale, rate, queries, keys, price)
    return bias.masked_fill(_ahead(queries, keys), 0.0)


def _kerple(formula):
    """Apply a formula of (scale, rate, distance)."""
    return lambda scale, rate, queries, keys, price: (
        price
        * formula(
            scale.double()[:, None, None],
            rate.double()[:, None, None],
            (keys - queries[:, None]).abs(),
        )
    )


def _no_one(scale, rate, distance):
    return -scale * (rate * distance).log()


def _kerple_of(change):
    """Call the right answer with changed arguments."""
    return lambda scale, rate, queries, keys, price: _logarithmic(
        *change(scale, rate, queries, keys), price
    )


def _still_at_zero(got, scale, rate, queries, keys, price):
    return bool((got[:, keys == queries[:, None]].abs() < 1e-6).all())


KERPLE_BIAS = Exercise(
    name="kerple_bias",
    stem="alibi",
    given="(scale, rate, query_positions, key_positions), scale and rate (heads,) → "
    "(heads, query, key), never above 0, to be added",
    right=_logarithmic,
    draw=_learned,
    constants={"price": PRICES},
    conventions={"0 for the future, which a mask must hide": _past_alone},
    proved="equal to the logarithmic formula, each head with its two numbers",
    properties=(
        Property(
            "a bias must not be above 0.",
            lambda got, *inputs, price: bool((got <= 1e-6).all()),
        ),
        Property("a query must see its own position at no price.", _still_at_zero),
    ),
    slips=(
        Slip(
            "sign lost",
            "The sign is lost, so far keys win. Each step must cost, not pay.",
            _kerple(lambda scale, rate, distance: scale * (rate * distance).log1p()),
        ),
        Slip(
            "no one",
            "The 1 inside the logarithm is missing: log(rate · 0) has no value.",
            _kerple(_no_one),
        ),
        Slip(
            "linear",
            "The logarithm is missing: that is ALiBi with the slope scale · rate.",
            _kerple(lambda scale, rate, distance: -scale * rate * distance),
        ),
        Slip(
            "rate outside",
            "The rate stands outside the logarithm; it multiplies the distance, "
            "inside it.",
            _kerple(lambda scale, rate, distance: -scale * rate * distance.log1p()),
        ),
        Slip(
            "scale and rate swapped",
            "Scale and rate have changed places; the rate is inside the logarithm.",
            _kerple_of(lambda scale, rate, *places: (rate, scale, *places)),
        ),
        Slip(
            "power",
            "That is KERPLE's power variant, distance^rate; here it is the "
            "logarithmic one.",
            _kerple(lambda scale, rate, distance: -scale * distance**rate),
        ),
        Slip(
            "signed",
            "A key after the query has a negative distance here, and the logarithm has "
            "no value there: take abs().",
            lambda scale, rate, queries, keys, price: (
                -price
                * scale.double()[:, None, None]
                * (rate[:, None, None] * (queries[:, None] - keys)).log1p()
            ),
        ),
        Slip(
            "decimal",
            "The logarithm has base 10; the natural one is meant.",
            _kerple(
                lambda scale, rate, distance: -scale * (1 + rate * distance).log10()
            ),
        ),
        Slip(
            "of two",
            "The logarithm has base 2; the natural one is meant.",
            _kerple(
                lambda scale, rate, distance: -scale * (1 + rate * distance).log2()
            ),
        ),
        Slip(
            "queries by index",
            "Queries are counted 0, 1, 2, …; use the positions that are given.",
            _kerple_of(lambda s, r, queries, k: (s, r, torch.arange(len(queries)), k)),
        ),
        Slip(
            "one head for all",
            "All heads have the two numbers of the first; each has its own.",
            _kerple_of(
                lambda s, r, q, k: (s[:1].expand(len(s)), r[:1].expand(len(r)), q, k)
            ),
        ),
    ),
)

# first_faint() -> number


def _first_below(fall, share, nearest=None):
    """Find the first n with nearest · fall^n below ``share``."""
    nearest = 1 - fall if nearest is None else nearest
    return math.floor(math.log(share / nearest) / math.log(fall)) + 1


def _slope(heads, head):
    return 2 ** (-8 * (head + 1) / heads)


def _faint(heads, head, share):
    return _first_below(math.exp(-_slope(heads, head)), share)


def _last_strong(heads, head, share):
    return _faint(heads, head, share) - 1


def _of_the_nearest(heads, head, share):
    return _first_below(math.exp(-_slope(heads, head)), share, nearest=1)


def _head_before(heads, head, share):
    return _faint(heads, head - 1, share)


def _powers_of_two(heads, head, share):
    return _first_below(2 ** -_slope(heads, head), share)


def _decimal_logarithm(heads, head, share):
    slope = _slope(heads, head)
    return math.floor(math.log10((1 - math.exp(-slope)) / share) / slope) + 1


def _mean_distance(heads, head, share):
    return round(1 / _slope(heads, head))


FIRST_FAINT = Exercise(
    name="first_faint",
    stem="alibi",
    given="() → from how many steps back on a key has less than `share` of the weight: "
    "equal contents, a long text, causal; head number `head`, from 0, of `heads`",
    right=_faint,
    constants={"heads": (8, 16), "head": (3, 2), "share": (0.01, 0.005)},
    proved="n steps back a key weighs e^(-m·n), and all of them 1/(1 - e^(-m))",
    slips=(
        Slip(
            "last strong",
            "That is the last key that is not below it yet.",
            _last_strong,
        ),
        Slip(
            "of the nearest",
            "That compares with the nearest key. A weight is a share of the whole "
            "row: multiply by 1 - e^(-m).",
            _of_the_nearest,
        ),
        Slip(
            "head before",
            "That is for the head before: index {head} is h = {head} + 1 in the "
            "formula.",
            _head_before,
        ),
        Slip(
            "powers of two",
            "The weight falls by e^(-m) each step; only slopes are powers of 2.",
            _powers_of_two,
        ),
        Slip(
            "decimal logarithm",
            "The logarithm has base 10; softmax has powers of e.",
            _decimal_logarithm,
        ),
        Slip(
            "mean distance",
            "That is 1/slope, about the mean distance; single weights are asked.",
            _mean_distance,
        ),
    ),
)

EXERCISES = (ALIBI_SLOPES, ALIBI_LOGITS, FOLD_ALIBI, KERPLE_BIAS, FIRST_FAINT)
