"""Slips of the stem attention: scale, softmax, masks, heads, padding."""

import math

import torch

from coursekit.attention import attention, causal_mask, merge_heads, split_heads
from coursekit.position import positions_from_mask
from coursekit.slips.exercise import Exercise, Property, Slip, whole

# attention(query, key, value) -> output; the logits are divided by `temperature`


def _three(generator, size, temperature):
    """Draw query, key and value, with an axis of its own length each."""
    batch, heads, head_dim = 2 + size % 2, 3 + size % 3, 6 + 2 * size
    queries, keys = 4 + size, 5 + 3 * size
    return (
        torch.randn(batch, heads, queries, head_dim, generator=generator),
        torch.randn(batch, heads, keys, head_dim, generator=generator),
        torch.randn(batch, heads, keys, head_dim + 3, generator=generator),
    )


def _right_attention(query, key, value, temperature):
    return attention(query / temperature, key, value).output


def _not_divided(query, key, value, temperature):
    scores = query @ key.mT
    return (scores / temperature).softmax(dim=-1) @ value


def _divided_by_head_dim(query, key, value, temperature):
    scores = query @ key.mT / query.shape[-1]
    return (scores / temperature).softmax(dim=-1) @ value


def _multiplied(query, key, value, temperature):
    scores = query @ key.mT * query.shape[-1] ** 0.5
    return (scores / temperature).softmax(dim=-1) @ value


def _root_of_keys(query, key, value, temperature):
    scores = query @ key.mT / key.shape[-2] ** 0.5
    return (scores / temperature).softmax(dim=-1) @ value


def _root_of_d_model(query, key, value, temperature):
    scores = query @ key.mT / (query.shape[1] * query.shape[-1]) ** 0.5
    return (scores / temperature).softmax(dim=-1) @ value


def _root_of_values(query, key, value, temperature):
    scores = query @ key.mT / value.shape[-1] ** 0.5
    return (scores / temperature).softmax(dim=-1) @ value


def _warmer(query, key, value, temperature):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return (scores * temperature).softmax(dim=-1) @ value


def _over_queries(query, key, value, temperature):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return (scores / temperature).softmax(dim=-2) @ value


def _over_heads(query, key, value, temperature):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return (scores / temperature).softmax(dim=1) @ value


def _no_softmax(query, key, value, temperature):
    return query @ key.mT / query.shape[-1] ** 0.5 / temperature @ value


def _scaled_after_softmax(query, key, value, temperature):
    weights = (query @ key.mT / temperature).softmax(dim=-1)
    return weights / query.shape[-1] ** 0.5 @ value


def _weights_alone(query, key, value, temperature):
    return attention(query / temperature, key, value).weights


def _between_values(got, query, key, value, temperature):
    low, high = value.amin(-2, keepdim=True), value.amax(-2, keepdim=True)
    return bool(((got >= low - 1e-4) & (got <= high + 1e-4)).all())


ATTENTION = Exercise(
    name="attention",
    stem="attention",
    given="(query, key, value), each (batch, heads, length, head_dim) → output",
    right=_right_attention,
    draw=_three,
    constants={"temperature": (1.0, 2.0, 0.5, 4.0)},
    view=lambda result, *inputs: getattr(result, "output", result),  # all the steps
    proved="shape, scale and softmax axis; equal to the formula",
    properties=(
        Property(
            "an output lies outside its values, but weights are positive and each row "
            "over the keys sums to 1.",
            _between_values,
        ),
    ),
    variant_slips=(
        Slip(
            "temperature multiplied",
            "The scores are multiplied by the temperature; divide by it.",
            _warmer,
        ),
    ),
    slips=(
        Slip(
            "not divided",
            "The scores are not divided: put 1/√head_dim before the softmax.",
            _not_divided,
        ),
        Slip(
            "divided by head_dim",
            "The scores are divided by head_dim; its square root is meant.",
            _divided_by_head_dim,
        ),
        Slip(
            "multiplied",
            "The scores are multiplied by √head_dim; divide by it.",
            _multiplied,
        ),
        Slip(
            "root of the keys",
            "The scores are divided by the root of the number of keys; it is the "
            "width of one head that makes them large: √head_dim.",
            _root_of_keys,
        ),
        Slip(
            "root of the values",
            "The scores are divided by the root of the value's width; it is the width "
            "of query and key that makes them large: √head_dim.",
            _root_of_values,
        ),
        Slip(
            "root of d_model",
            "The scores are divided by √d_model; each head is only head_dim wide.",
            _root_of_d_model,
        ),
        Slip(
            "softmax over the queries",
            "The softmax runs over the queries; each row over the keys must sum to 1.",
            _over_queries,
        ),
        Slip(
            "softmax over the heads",
            "The softmax runs over the heads; it belongs to the keys, dim=-1.",
            _over_heads,
        ),
        Slip(
            "no softmax",
            "The softmax is missing: weights are positive and sum to 1.",
            _no_softmax,
        ),
        Slip(
            "scaled after the softmax",
            "The scale comes after the softmax, so rows no longer sum to 1; divide "
            "the scores.",
            _scaled_after_softmax,
        ),
        Slip(
            "weights alone",
            "These are the weights; they must still average the values: weights @ "
            "value.",
            _weights_alone,
        ),
    ),
)

# causal_mask(query_positions, key_positions) -> mask; `window` is how many positions a
# query sees, its own included


def _queries_and_keys(generator, size, window):
    """Draw positions with repeats and gaps, as padding and a cache make them.

    The newest query has a key at the edge of its window, one past it, and a gap inside.
    """
    count = 8 + 3 * size
    steps = torch.randint(1, 4, (count,), generator=generator)
    steps[: whole(generator, 2, 4)] = 0  # a repeat at the start, as left padding
    keys = steps.cumsum(0)
    if window is not None:
        back = [window, window - 1, *range(window - 3, -1, -1)]
        keys = torch.cat((keys, keys[-1] + 1 + window - torch.tensor(back)))
        count = len(keys)
    index = torch.randperm(count, generator=generator)[: 4 + size]
    index[0] = count - 1  # the newest, and an early one
    index[1] = whole(generator, 3, count - 2)
    return keys[index], keys


def _causal(queries, keys, window):
    return causal_mask(queries, keys) & _near(queries, keys, window)


def _near(queries, keys, window):
    return queries[:, None] - keys[None] < (math.inf if window is None else window)


def _one_too_many(queries, keys, window):
    return causal_mask(queries, keys) & _near(queries, keys, window and window + 1)


def _one_too_few(queries, keys, window):
    return causal_mask(queries, keys) & _near(queries, keys, window and window - 1)


def _keys_counted(queries, keys, window):
    seen = causal_mask(queries, keys)
    from_here = seen.long().flip(-1).cumsum(-1).flip(-1)
    return seen & (from_here <= (len(keys) if window is None else window))


def _inverted(queries, keys, window):
    return ~_causal(queries, keys, window)


def _without_itself(queries, keys, window):
    return (keys < queries[:, None]) & _near(queries, keys, window)


def _future(queries, keys, window):
    return keys >= queries[:, None]


def _by_row(queries, keys, window):
    seen = torch.ones(len(queries), len(keys), dtype=torch.bool).tril()
    return seen & _near(torch.arange(len(queries)), torch.arange(len(keys)), window)


def _by_row_from_the_end(queries, keys, window):
    late = len(keys) - len(queries)
    seen = torch.ones(len(queries), len(keys), dtype=torch.bool).tril(late)
    rows = torch.arange(len(queries)) + late
    return seen & _near(rows, torch.arange(len(keys)), window)


def _keys_by_index(queries, keys, window):
    return _causal(queries, torch.arange(len(keys)), window)


def _nothing_blocked(queries, keys, window):
    return torch.ones(len(queries), len(keys), dtype=torch.bool)


def _no_later_key(got, queries, keys, window):
    return not bool((got & (keys > queries[:, None])).any())


def _sees_itself(got, queries, keys, window):
    return bool(got[keys == queries[:, None]].all())


CAUSAL_MASK = Exercise(
    name="causal_mask",
    stem="attention",
    given="(query_positions, key_positions), two rows → (query, key) boolean, True = "
    "may attend",
    right=_causal,
    draw=_queries_and_keys,
    constants={"window": (None, 3, 5, 8)},
    proved="boolean, and right by position, not by index",
    properties=(
        Property("a query may attend to a later key.", _no_later_key),
        Property("a query may not attend to its own position.", _sees_itself),
    ),
    variant_slips=(
        Slip(
            "one too many",
            "One position too many is in sight: with a window of {window} the last is "
            "{window} - 1 back.",
            _one_too_many,
        ),
        Slip(
            "one too few",
            "One position too few is in sight: the query's own counts, and {window} - "
            "1 before it.",
            _one_too_few,
        ),
        Slip(
            "keys counted",
            "That is the last {window} keys; a window counts positions, and keys may "
            "have gaps.",
            _keys_counted,
        ),
    ),
    slips=(
        Slip(
            "inverted",
            "It is the other way round: True means that a query may attend.",
            _inverted,
        ),
        Slip(
            "without itself",
            "A query does not see itself; its own position is not later: use <=.",
            _without_itself,
        ),
        Slip(
            "future",
            "Queries look into the future; a key may not be later than its query.",
            _future,
        ),
        Slip(
            "by row",
            "Row 0 is taken for position 0, but queries may stand anywhere, as with "
            "a cache. Compare positions, not indices.",
            _by_row,
        ),
        Slip(
            "by row from the end",
            "Rows are aligned with the last keys, which is right for 0, 1, 2, … but "
            "not for positions with repeats and gaps, as padding makes them. Compare "
            "positions, not indices.",
            _by_row_from_the_end,
        ),
        Slip(
            "keys by index",
            "Keys are counted 0, 1, 2, … although their positions are given. Compare "
            "positions with positions.",
            _keys_by_index,
        ),
        Slip("nothing blocked", "Nothing is blocked.", _nothing_blocked),
    ),
)

# split_heads(x, num_heads) -> (batch, num_heads, length, head_dim)


def _features(generator, size, layout):
    """Draw features, with an axis of its own length each."""
    batch, length, heads, head_dim = [(2, 5, 3, 4), (3, 4, 2, 5)][size % 2]
    shape = (batch, length + 2 * size, heads * head_dim)
    return torch.randn(shape, generator=generator), heads


def _split(x, num_heads, layout):
    if layout == "turns":
        return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)
    return split_heads(x, num_heads)


def _only_reshaped(x, num_heads, layout):
    batch, length, d_model = x.shape
    return x.reshape(batch, num_heads, length, d_model // num_heads)


def _not_transposed(x, num_heads, layout):
    return _split(x, num_heads, layout).transpose(1, 2)


def _other_layout(x, num_heads, layout):
    return _split(x, num_heads, "blocks" if layout == "turns" else "turns")


def _heads_for_width(x, num_heads, layout):
    return _split(x, x.shape[-1] // num_heads, layout)


def _width_before_length(x, num_heads, layout):
    return _split(x, num_heads, layout).mT


def _heads_before_batch(x, num_heads, layout):
    return _split(x, num_heads, layout).transpose(0, 1)


def _same_for_all(x, num_heads, layout):
    head = _split(x, num_heads, layout)[:, :1]
    return head.expand(-1, num_heads, -1, -1)


def _keeps_tokens(got, x, num_heads, layout):
    kept, x = merge_heads(got).sort(-1).values, x.sort(-1).values
    return torch.allclose(kept.double(), x.double(), atol=1e-4)


SPLIT_HEADS = Exercise(
    name="split_heads",
    stem="attention",
    given="(x, num_heads), x (batch, length, d_model) → (batch, num_heads, length, "
    "head_dim)",
    right=_split,
    draw=_features,
    constants={"layout": ("blocks", "turns")},
    proved="each token keeps its features, each head gets its own",
    properties=(
        Property("the heads of a token do not hold its own features.", _keeps_tokens),
    ),
    slips=(
        Slip(
            "only reshaped",
            "One reshape mixes tokens: cut d_model into (num_heads, head_dim) first, "
            "then move the axis of the heads.",
            _only_reshaped,
        ),
        Slip(
            "not transposed",
            "Length stands before heads; a transpose(1, 2) is missing.",
            _not_transposed,
        ),
        Slip(
            "other layout",
            "Features go to the heads in the other layout; here it is {layout}: "
            "blocks of neighbours for each head, or turns of one feature each.",
            _other_layout,
        ),
        Slip(
            "heads taken for width",
            "num_heads is taken for head_dim: there are num_heads heads, each d_model "
            "/ num_heads wide.",
            _heads_for_width,
        ),
        Slip(
            "width before length",
            "The last two axes have changed places; the features of a head are last.",
            _width_before_length,
        ),
        Slip(
            "heads before batch",
            "Batch and heads have changed places; the batch is first.",
            _heads_before_batch,
        ),
        Slip(
            "the same for all",
            "Every head gets the features of head 0; the others are lost.",
            _same_for_all,
        ),
    ),
)

# positions_from_mask(mask) -> positions; the first real token has position `start`


def _padded(generator, size, start):
    """Draw rows that are padded left, right, on both sides and not at all."""
    length = 7 + 2 * size
    left = torch.randint(1, 3, (4 + size, 1), generator=generator)
    right = torch.randint(1, 3, (4 + size, 1), generator=generator)
    left[0], right[1], left[2], right[2] = 0, 0, 0, 0
    index = torch.arange(length)
    mask = (index >= left) & (index < length - right)
    return (mask[torch.randperm(4 + size, generator=generator)],)


def _from_mask(mask, start):
    return (positions_from_mask(mask) + start).masked_fill(~mask, 0)


def _start_on_padding(mask, start):
    return positions_from_mask(mask) + start


def _all_places(mask, start):
    return (torch.arange(mask.shape[1]) + start).expand(mask.shape)


def _padding_counted(mask, start):
    return _all_places(mask, start).masked_fill(~mask, 0)


def _one_too_large(mask, start):
    return (mask.cumsum(-1) + start).masked_fill(~mask, 0)


def _padding_not_reset(mask, start):
    return mask.cumsum(-1) - 1 + start


def _padding_after_not_reset(mask, start):
    return (mask.cumsum(-1) - 1).clamp(min=0) + start


def _down_the_batch(mask, start):
    return (mask.cumsum(0) - 1 + start).masked_fill(~mask, 0)


def _from_the_end(mask, start):
    return (mask.flip(-1).cumsum(-1).flip(-1) - 1 + start).masked_fill(~mask, 0)


def _mask_inverted(mask, start):
    return _from_mask(~mask, start)


def _grows_by_one(got, mask, start):
    both = mask[:, 1:] & mask[:, :-1]
    return bool((got.diff(dim=-1)[both] == 1).all())


POSITIONS_FROM_MASK = Exercise(
    name="positions_from_mask",
    stem="attention",
    given="(mask), (batch, length) boolean, True = a real token → (batch, length) "
    "whole numbers, padding 0",
    right=_from_mask,
    draw=_padded,
    constants={"start": (0, 2, 5, 1)},
    proved="real tokens are counted, on whichever side the padding is",
    properties=(
        Property("real neighbours are not one position apart.", _grows_by_one),
    ),
    variant_slips=(
        Slip(
            "start on padding",
            "Padding has the start added, too; it has 0, whatever the start.",
            _start_on_padding,
        ),
    ),
    slips=(
        Slip(
            "all places",
            "Padding takes positions, too: every place is counted. Count the real "
            "tokens, and give padding 0.",
            _all_places,
        ),
        Slip(
            "padding counted",
            "Padding shows 0 but is still counted, so a row padded on the left starts "
            "late. Count the real tokens: cumsum.",
            _padding_counted,
        ),
        Slip(
            "one too large",
            "Each position is one too large: cumsum counts the token itself, so the "
            "first gives 1.",
            _one_too_large,
        ),
        Slip(
            "padding not reset",
            "Real tokens are right, but padding on either side keeps what cumsum left "
            "there; it has 0.",
            _padding_not_reset,
        ),
        Slip(
            "padding after not reset",
            "Padding is not always 0: clamp mends what stands before the first token, "
            "and nothing after the last.",
            _padding_after_not_reset,
        ),
        Slip(
            "down the batch",
            "It counts down the batch; tokens follow each other along the last axis.",
            _down_the_batch,
        ),
        Slip(
            "from the end",
            "It counts from the end, so the last token has the smallest position.",
            _from_the_end,
        ),
        Slip(
            "inverted",
            "It counts the padding: True means a real token here.",
            _mask_inverted,
        ),
    ),
)

# different_outputs() -> number


def _different(length, place):
    return length * math.comb(length - 1, place)


def _every_order(length, place):
    return math.factorial(length)


def _bag_alone(length, place):
    return math.comb(length, place + 1)


def _word_alone(length, place):
    return length


def _past_in_order(length, place):
    return math.perm(length, place + 1)


def _counted_from_one(length, place):
    return length * math.comb(length - 1, place - 1)


def _past_alone(length, place):
    return math.comb(length - 1, place)


DIFFERENT_OUTPUTS = Exercise(
    name="different_outputs",
    stem="attention",
    given="() → how many different outputs the token at index `place` has over all "
    "orders of `length` different words: one causal layer, no positions",
    right=_different,
    constants={"length": (7, 9, 10, 11), "place": (2, 3)},
    proved="the word that asks, and the unordered bag before it",
    slips=(
        Slip(
            "every order",
            "That is every order of the words. But the past of a query is a bag: "
            "swapping two words in it changes nothing.",
            _every_order,
        ),
        Slip(
            "the bag alone",
            "That counts the bags that can be seen. But which of their words asks "
            "matters, too: it makes the query.",
            _bag_alone,
        ),
        Slip(
            "the word alone",
            "That would be right without a mask, where every query sees all words. "
            "Here it sees those up to its own.",
            _word_alone,
        ),
        Slip(
            "the past in order",
            "That tells two orders of the same past apart; one layer without "
            "positions cannot.",
            _past_in_order,
        ),
        Slip(
            "counted from one",
            "One word too few in the past: indices start at 0, so {place} words stand "
            "before index {place}.",
            _counted_from_one,
        ),
        Slip(
            "the past alone",
            "That is for one given word at index {place}; any of the {length} words "
            "can stand there.",
            _past_alone,
        ),
    ),
)

EXERCISES = (
    ATTENTION,
    CAUSAL_MASK,
    SPLIT_HEADS,
    POSITIONS_FROM_MASK,
    DIFFERENT_OUTPUTS,
)
