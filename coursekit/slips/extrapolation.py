"""Slips of the stem extrapolation: windows, scores, untrained rows, caches, counts."""

import math

import torch

from coursekit.relative import relative_positions, t5_bucket
from coursekit.rope import apply_rope
from coursekit.sinusoidal import position_angles
from coursekit.slips.exercise import Exercise, Property, Slip, whole, wholes
from coursekit.slips.sinusoidal import BASES

# window_bias(query_positions, key_positions) -> 0 for the last width tokens, else -inf


def _around_the_edge(generator, size, width):
    """Draw keys in any order, some at both edges of the first query's window."""
    at = whole(generator, 4 * width + 9, 4 * width + 30)
    edges = torch.tensor([-width, 1 - width, 0, 1, width - 1, width])
    count = 1 + size
    past = at - width - 1 - wholes(generator, 0, 2 * width, count)
    ahead = at + width + 1 + wholes(generator, 0, 2 * width, count)
    keys = torch.cat((at + edges, past, ahead))
    queries = at + torch.cat((torch.zeros(1).long(), wholes(generator, 1, 9, 3 + size)))
    return queries, keys[torch.randperm(len(keys), generator=generator)]


_FINITE, _LARGE = 0.5, 1e-3  # marks of numbers that stand in place of -inf


def _weight_left(bias, queries, keys):
    """Take what a bias leaves of a weight: 1, or 0 where it hides.

    Finite numbers far below 0 leave a mark: a large one, or one that may not hide.
    """
    bias = torch.as_tensor(bias.copy() if hasattr(bias, "copy") else bias)
    other = bias.dtype == torch.bool or bias.dtype.is_complex
    if other or bias.numel() != len(queries) * len(keys):
        return bias
    bias = bias.double()
    finite = bias.masked_fill(bias == -math.inf, 0)
    left = bias.exp().masked_fill(finite < -1.5, _FINITE)
    return left.masked_fill(finite < -1e8, _LARGE)


def _hidden_where(far, number=-math.inf):
    """Hide where a function of (offsets, width) is true."""

    def bias(queries, keys, width):
        offsets = relative_positions(queries, keys)
        return torch.zeros(offsets.shape).masked_fill(far(offsets, width), number)

    return bias


def _far(offsets, width):
    return offsets <= -width


def _far_or_ahead(offsets, width):
    return (offsets <= -width) | (offsets > 0)


def _outside_a_band(offsets, width):
    return offsets.abs() >= width


_window = _hidden_where(_far)


def _by_index(queries, keys, width):
    return _window(torch.arange(len(queries)), torch.arange(len(keys)), width)


def _blocks(queries, keys, width):
    other = queries[:, None] // width != keys // width
    return torch.zeros(other.shape).masked_fill(other, -math.inf)


def _minus_one(queries, keys, width):
    return -1.0 * (relative_positions(queries, keys) <= -width)


def _times_infinity(queries, keys, width):
    return (relative_positions(queries, keys) <= -width) * -math.inf


def _ones_and_zeros(queries, keys, width):
    return 1.0 * (relative_positions(queries, keys) > -width)


def _a_mask(queries, keys, width):
    return relative_positions(queries, keys) > -width


def _keys_first(queries, keys, width):
    return _window(queries, keys, width).T


def _itself(got, queries, keys, width):
    return bool((got[queries[:, None] == keys] == 1).all())


WINDOW_BIAS = Exercise(
    name="window_bias",
    stem="extrapolation",
    given="(query_positions, key_positions), two rows → (query, key) numbers to add to "
    "the scores",
    right=_window,
    draw=_around_the_edge,
    view=_weight_left,
    constants={"width": (4, 3, 6)},
    conventions={
        "the future is hidden, too": _hidden_where(_far_or_ahead),
        "a band: far ahead is hidden, too": _hidden_where(_outside_a_band),
        "a large negative number instead of -inf": _hidden_where(_far, -1e9),
        "a large negative number instead of -inf, in the future, too": _hidden_where(
            _far_or_ahead, -1e9
        ),
        "a large negative number instead of -inf, far ahead, too": _hidden_where(
            _outside_a_band, -1e9
        ),
    },
    proved="{width} positions in sight, the query's own among them, from any start",
    properties=(
        Property("a token must see itself.", _itself),
        Property(
            "what is out of sight has a finite number; only -inf hides for certain.",
            lambda got, *inputs, width: not bool((got == _FINITE).any()),
        ),
    ),
    slips=(
        Slip(
            "one too many",
            "One position too many is in sight: the query's own is one of the {width}.",
            _hidden_where(lambda offsets, width: offsets < -width),
        ),
        Slip(
            "one too few",
            "One position too few is in sight: {width} of them, the query's own and "
            "those before.",
            _hidden_where(lambda offsets, width: offsets < 2 - width),
        ),
        Slip(
            "other side",
            "The far future is hidden and the far past is in sight: the sign of the "
            "offset is turned.",
            _hidden_where(lambda offsets, width: offsets >= width),
        ),
        Slip(
            "turned",
            "What is near is hidden and what is far is in sight: the choice is turned.",
            _hidden_where(lambda offsets, width: offsets > -width),
        ),
        Slip(
            "by index",
            "Tokens are counted 0, 1, 2, …; use the positions that are given.",
            _by_index,
        ),
        Slip(
            "blocks",
            "The text is cut into blocks, so a window ends where a block begins. Here "
            "it moves along with the query.",
            _blocks,
        ),
        Slip(
            "minus one",
            "Far scores are only 1 lower, and their weights not 0. Use -inf.",
            _minus_one,
        ),
        Slip(
            "finite",
            "Small as such a weight is, it is not 0, and a high score brings it back.",
            _hidden_where(_far, -20.0),
        ),
        Slip(
            "times infinity",
            "0 times infinity is NaN, so what should stay is lost. Use torch.where or "
            "masked_fill.",
            _times_infinity,
        ),
        Slip(
            "ones and zeros",
            "Those are 1 and 0, as if to multiply. A bias is added: 0 keeps a score.",
            _ones_and_zeros,
        ),
        Slip(
            "a mask",
            "That is the mask. A bias holds 0 where it is true and -inf where not.",
            _a_mask,
        ),
        Slip(
            "keys first",
            "Rows are keys here; each query has a row.",
            _keys_first,
        ),
    ),
)

# loss_by_length(losses, lengths) -> mean loss of all tokens, cut into such windows

_CUTS = (
    (48, (4, 6, 12, 24)),
    (60, (5, 6, 10, 15, 20)),
    (72, (4, 6, 8, 9, 18, 36)),
    (90, (5, 6, 9, 15, 18, 30, 45)),
    (96, (3, 4, 6, 8, 12, 16, 32, 48)),
)


def _table_of_losses(generator, size, unit):
    """Draw a loss of each token for each number of tokens before it."""
    tokens, lengths = _CUTS[size]
    falling = 2 / (1 + torch.arange(tokens))
    losses = 1 + torch.rand(tokens, tokens, generator=generator) + falling
    order = torch.randperm(len(lengths), generator=generator)
    return losses, [lengths[i] for i in order.tolist()]


def _in(unit):
    return 1 if unit == "nats" else 1 / math.log(2)


def _scored(before, chosen=lambda token, length: token >= 0, total=lambda length: 1):
    """Score each token with ``before``(token, length, tokens) others before it."""

    def mean_losses(losses, lengths, unit):
        token, found = torch.arange(len(losses)), []
        for length in lengths:
            loss = losses.double()[token, before(token, length, len(token))]
            found.append(loss[chosen(token, length)].mean() * total(length))
        return torch.stack(found) * _in(unit)

    return mean_losses


def _place(token, length, tokens):
    return token % length


def _whole_columns(first):
    """Take the mean over columns, as if each token could have any number before it."""

    def mean_losses(losses, lengths, unit):
        found = [losses[:, first(n) : n].double().mean() for n in lengths]
        return torch.stack(found) * _in(unit)

    return mean_losses


def _perplexity(losses, lengths, unit):
    return _scored(_place)(losses, lengths, "nats").exp()


def _times_log_of_two(losses, lengths, unit):
    return _scored(_place)(losses, lengths, "nats") * math.log(2)


LOSS_BY_LENGTH = Exercise(
    name="loss_by_length",
    stem="extrapolation",
    given="(losses, lengths), losses (tokens, tokens) in nats, of each token with 0, "
    "1, 2, … others in sight before it; lengths that divide tokens → a mean for each",
    right=_scored(_place),
    draw=_table_of_losses,
    constants={"unit": ("nats", "bits")},
    proved="the same tokens at each length, in windows side by side, in {unit}",
    slips=(
        Slip(
            "first window",
            "Only the first window is scored, so each length has another text. Score "
            "all tokens at each.",
            _scored(_place, lambda token, length: token < length),
        ),
        Slip(
            "last place",
            "Only the last token of each window is scored. Score all tokens at each "
            "length.",
            _scored(_place, lambda token, length: token % length == length - 1),
        ),
        Slip(
            "first place left out",
            "The first token of each window is not scored, so each length leaves out "
            "others. It has 0 before it, and counts.",
            _scored(_place, lambda token, length: token % length > 0),
        ),
        Slip(
            "sliding window",
            "Each token has a window that ends at it. Here windows stand side by side, "
            "and the first token of each has nothing before it.",
            _scored(lambda token, length, tokens: token.clamp(max=length - 1)),
        ),
        Slip(
            "not cut",
            "Every token has all the text before it, whatever the length. A window "
            "hides what lies before its start.",
            _scored(lambda token, length, tokens: token),
        ),
        Slip(
            "from one",
            "One token too many is in sight: the first of a window has 0 before it.",
            _scored(lambda token, length, tokens: token % length + 1),
        ),
        Slip(
            "strided",
            "Windows run down the columns, so their tokens do not follow each other. "
            "Each window is a piece of the text: view(-1, length).",
            _scored(lambda token, length, tokens: token // (tokens // length)),
        ),
        Slip(
            "sum of a window",
            "That is the sum over a window; divide by the tokens, not the windows.",
            _scored(_place, total=lambda length: length),
        ),
        Slip(
            "all columns",
            "That is the mean over all columns up to the length. In a window a token "
            "has one number of others before it: its place in the window.",
            _whole_columns(lambda length: 0),
        ),
        Slip(
            "last column",
            "That gives every token the most that a window allows; only the last of "
            "each window has so many before it.",
            _whole_columns(lambda length: length - 1),
        ),
        Slip(
            "perplexity",
            "That is the perplexity; the mean loss itself is asked, in {unit}.",
            _perplexity,
        ),
        Slip(
            "times ln 2",
            "Losses are multiplied by ln 2. Bits are nats divided by it, and nats stay "
            "as they are; here it is {unit}.",
            _times_log_of_two,
        ),
    ),
)

# mend_table(table, trained_length) -> the last trained row in all untrained ones

_FARTHEST = (128, 100, 200)


def _buckets(distances, num_buckets, max_distance, bidirectional=False):
    return t5_bucket(-distances, num_buckets, max_distance, bidirectional=bidirectional)


def _trained_table(generator, size, max_distance):
    """Draw a table, and a length that just does not reach some bucket.

    The length is one whose last distance lies in another bucket for each choice of
    max_distance, so no answer made for one card passes with another.
    """
    num_buckets = 32 + 4 * size
    table = torch.randn(num_buckets, 3 + size, generator=generator)
    bucket = _buckets(torch.arange(max_distance + 1), num_buckets, max_distance)
    untrained = range(num_buckets * 5 // 8, num_buckets - 4)
    lengths = [int((bucket == i).nonzero()[0]) for i in untrained]
    last_rows = [{_last_row(table, n, far) for far in _FARTHEST} for n in lengths]
    apart = [i for i, rows in enumerate(last_rows) if len(rows) == len(_FARTHEST)]
    return table, lengths[apart[whole(generator, 0, len(apart))]]


def _last_row(table, length, max_distance, bidirectional=False):
    """Find the row of the farthest distance in a text of ``length``."""
    farthest = torch.tensor(length - 1)
    return int(_buckets(farthest, len(table), max_distance, bidirectional))


def _copied(row, to):
    """Copy ``row`` into all from ``to`` on, both counted from the last trained one."""

    def mended(table, length, max_distance):
        last, table = _last_row(table, length, max_distance), table.clone()
        table[last + to :] = table[last + row]
        return table

    return mended


def _as_it_was(table, length, max_distance):
    return table.clone()


def _filled(value):
    """Put a function of the trained rows into the others."""

    def mended(table, length, max_distance):
        trained = table[: _last_row(table, length, max_distance) + 1]
        return torch.cat((trained, value(trained, len(table) - len(trained))))

    return mended


def _zeros(trained, count):
    return trained.new_zeros(count, trained.shape[1])


def _mean(trained, count):
    return trained.mean(0, keepdim=True).expand(count, -1)


def _reflected(trained, count):
    return trained.flip(0)[:count]


def _trend(trained, count):
    step = trained[-1] - trained[-2]
    return trained[-1] + torch.arange(1, count + 1)[:, None] * step


def _sign_turned(table, length, max_distance):
    return table[:1].expand_as(table)


def _half_the_buckets(table, length, max_distance):
    last, table = _last_row(table, length, max_distance, True), table.clone()
    table[last:] = table[last]
    return table


def _one_head(table, length, max_distance):
    last, table = _last_row(table, length, max_distance), table.clone()
    table[last:, 0] = table[last, 0]
    return table


def _trained_stay(got, table, length, max_distance):
    last = _last_row(table, length, max_distance)
    return torch.allclose(got[: last + 1].double(), table[: last + 1].double())


MEND_TABLE = Exercise(
    name="mend_table",
    stem="extrapolation",
    given="(table, trained_length), (num_buckets, heads), rows that no text of "
    "trained_length asks hold anything → (num_buckets, heads)",
    right=_copied(0, 1),
    draw=_trained_table,
    constants={"max_distance": _FARTHEST},
    proved="the row of the farthest trained distance, up to max_distance "
    "{max_distance} and beyond",
    properties=(Property("a trained row has changed.", _trained_stay),),
    slips=(
        Slip(
            "as it was",
            "Nothing is copied: far distances still ask rows that training never "
            "touched.",
            _as_it_was,
        ),
        Slip(
            "one row late",
            "The first untrained row is copied. A text of trained_length holds "
            "distances up to trained_length - 1.",
            _copied(1, 1),
        ),
        Slip(
            "one row early",
            "The last trained row is overwritten with the one before; start behind it.",
            _copied(-1, 0),
        ),
        Slip(
            "row before",
            "The row before the last trained one is copied. Its neighbour was trained, "
            "too, and is nearer.",
            _copied(-1, 1),
        ),
        Slip(
            "zeros",
            "Untrained rows are 0, louder than a trained one that has fallen far "
            "below. Copy the last trained row.",
            _filled(_zeros),
        ),
        Slip(
            "mean",
            "Untrained rows hold the mean of the trained ones; copy the last, which "
            "is the nearest.",
            _filled(_mean),
        ),
        Slip(
            "reflected",
            "Rows come back from the end, so farther ones grow near again. Copy the "
            "last.",
            _filled(_reflected),
        ),
        Slip(
            "trend",
            "The last step is repeated over and over; no training says so. Copy the "
            "last trained row.",
            _filled(_trend),
        ),
        Slip(
            "sign turned",
            "Row 0 is everywhere. An offset is key minus query: for the past it is "
            "below 0, and the rest shares bucket 0.",
            _sign_turned,
        ),
        Slip(
            "half the buckets",
            "The last trained row is that of the bidirectional form, which has half "
            "of the buckets for the past. Causal, it has all.",
            _half_the_buckets,
        ),
        Slip(
            "one head",
            "Only the first head is mended; a row holds one number for each.",
            _one_head,
        ),
    ),
)

# evict(keys, positions, excess) -> keys that stay, turned to 0, 1, 2, …


def _full_cache(generator, size, sinks, base):
    """Draw turned keys whose positions have gaps and do not begin at 0."""
    excess, behind = 2 + size, 4 + 2 * size
    steps = torch.randint(1, 4, (sinks + excess + behind,), generator=generator)
    steps[0], steps[-2] = whole(generator, 2, 7), 3
    width = 6 + 2 * size
    keys = torch.randn(2 + size, len(steps), width, generator=generator)
    return keys, steps.cumsum(0), excess


def _turned_by(keys, steps, base):
    return apply_rope(keys, position_angles(steps, keys.shape[-1], base))


def _staying(length, first, excess):
    """Index all but ``excess`` keys from ``first`` on."""
    index = torch.arange(length)
    return index[(index < first) | (index >= first + excess)]


def _evicting(move=lambda old, new, sinks: new - old, first=lambda sinks, n: sinks):
    """Throw out the keys from ``first`` on and turn the others by ``move``."""

    def evict(keys, positions, excess, sinks, base):
        n = keys.shape[-2] - excess
        stay = _staying(n + excess, first(sinks, n), excess)
        steps = move(positions[stay], torch.arange(n), sinks)
        return _turned_by(keys[:, stay], steps, base)

    return evict


_evict = _evicting()


def _as_if_counted(keys, positions, excess, sinks, base):
    return _evict(keys, torch.arange(len(positions)), excess, sinks, base)


def _moved_alike(old, new, sinks):
    moved = torch.full_like(old, new[sinks] - old[sinks])
    moved[:sinks] = -old[0]
    return moved


def _sinks_stay(old, new, sinks):
    return torch.where(new < sinks, 0, new - old)


def _other_pairs(keys, positions, excess, sinks, base):
    index = torch.arange(keys.shape[-1]).unflatten(0, (2, -1)).T.flatten()
    found = _evict(keys[..., index], positions, excess, sinks, base)
    return found[..., index.argsort()]


def _lengths_kept(got, keys, positions, excess, sinks, base):
    stay = _staying(len(positions), sinks, excess)
    norms = keys.double()[:, stay].norm(dim=-1)
    return torch.allclose(got.double().norm(dim=-1), norms, atol=1e-3)


EVICT = Exercise(
    name="evict",
    stem="extrapolation",
    given="(keys, positions, excess), (heads, length, head_dim) turned in adjacent "
    "pairs to positions (length,) → (heads, length - excess, head_dim), turned to "
    "0, 1, 2, …",
    right=_evict,
    draw=_full_cache,
    constants={"sinks": (4, 2, 3), "base": BASES[:2]},
    proved="{sinks} sinks and the newest stay, at the positions of the cache",
    properties=(
        Property(
            "a row is not as long as the key that should stand there, and turning "
            "keeps lengths.",
            _lengths_kept,
        ),
    ),
    slips=(
        Slip(
            "not turned",
            "The keys that stay are not turned: they still stand at the positions of "
            "the text.",
            _evicting(lambda old, new, sinks: 0 * old),
        ),
        Slip(
            "wrong way",
            "Keys are turned the wrong way: from old to new it is new minus old.",
            _evicting(lambda old, new, sinks: old - new),
        ),
        Slip(
            "turned twice",
            "Keys are turned by their new positions on top of the old ones; turn by "
            "the difference.",
            _evicting(lambda old, new, sinks: new),
        ),
        Slip(
            "turned back only",
            "Keys are turned back to 0, all of them; then each must go on "
            "to its new place.",
            _evicting(lambda old, new, sinks: -old),
        ),
        Slip(
            "from one",
            "New positions are counted from 1; the first key stands at 0.",
            _evicting(lambda old, new, sinks: new + 1 - old),
        ),
        Slip(
            "as if counted",
            "The old positions are taken to be 0, 1, 2, …; use those that are given.",
            _as_if_counted,
        ),
        Slip(
            "moved alike",
            "All keys behind the gap are moved by the same amount, so other gaps stay. "
            "Each has its own difference.",
            _evicting(_moved_alike),
        ),
        Slip(
            "sinks stay",
            "The sinks are not turned; they move, too, to 0 and on.",
            _evicting(_sinks_stay),
        ),
        Slip(
            "sinks gone",
            "The oldest keys of all are gone; the first {sinks} are sinks, and stay.",
            _evicting(first=lambda sinks, n: 0),
        ),
        Slip(
            "newest gone",
            "The newest keys are gone; throw out the oldest behind the sinks.",
            _evicting(first=lambda sinks, n: n),
        ),
        Slip(
            "one sink short",
            "One sink is gone: the first {sinks} stay.",
            _evicting(first=lambda sinks, n: sinks - 1),
        ),
        Slip(
            "pairs of halves",
            "Pairs are a feature of the first half and one of the second; here "
            "neighbours turn together.",
            _other_pairs,
        ),
    ),
)

# little_context() -> number of tokens


def _little(tokens, length, needed):
    return tokens // length * needed


def _through_needed(tokens, length, needed):
    return tokens // length * (needed + 1)


def _from_one(tokens, length, needed):
    return tokens // length * (needed - 1)


def _one_window(tokens, length, needed):
    return needed


def _windows(tokens, length, needed):
    return tokens // length


def _enough(tokens, length, needed):
    return tokens - _little(tokens, length, needed)


def _the_share(tokens, length, needed):
    return needed / length


def _first_window_safe(tokens, length, needed):
    return (tokens // length - 1) * needed


def _both_ends(tokens, length, needed):
    return 2 * _little(tokens, length, needed)


LITTLE_CONTEXT = Exercise(
    name="little_context",
    stem="extrapolation",
    given="() → how many of `tokens` have fewer than `needed` others before them in "
    "their window, cut into windows of `length` side by side",
    right=_little,
    constants={
        "tokens": (4_800, 8_400, 10_800),
        "length": (200, 240, 300),
        "needed": (30, 32, 44),
    },
    proved="each window starts in the dark anew, and longer ones do so less often",
    slips=(
        Slip(
            "through needed",
            "That counts those with exactly {needed} before them, too; fewer than "
            "{needed} are 0 to {needed} - 1.",
            _through_needed,
        ),
        Slip(
            "from one",
            "That leaves out a token of each window: the first has 0 before it, and "
            "counts.",
            _from_one,
        ),
        Slip(
            "one window",
            "That is one window; each of them starts anew.",
            _one_window,
        ),
        Slip(
            "windows",
            "That is the number of windows; each holds several such tokens.",
            _windows,
        ),
        Slip(
            "enough",
            "That counts those with enough before them; the others are asked.",
            _enough,
        ),
        Slip(
            "share",
            "That is the share; the number of tokens is asked.",
            _the_share,
        ),
        Slip(
            "first window safe",
            "That leaves out the first window, which starts in the dark like any "
            "other.",
            _first_window_safe,
        ),
        Slip(
            "both ends",
            "That counts the ends of windows as well; the last tokens have most before "
            "them.",
            _both_ends,
        ),
    ),
)

EXERCISES = (WINDOW_BIAS, LOSS_BY_LENGTH, MEND_TABLE, EVICT, LITTLE_CONTEXT)
