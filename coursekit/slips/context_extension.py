"""Slips of the stem context_extension: bases, ramps, the attention factor, configs."""

import math

import torch

from coursekit import rope_config
from coursekit.context_extension import dynamic_ntk_frequencies
from coursekit.per_pair import yarn_frequencies
from coursekit.sinusoidal import pair_frequencies
from coursekit.slips.exercise import Exercise, Property, Slip, whole

# dynamic_frequencies(lengths, dim) -> a row of frequencies for each text, in order


def _texts_in_turn(generator, size, base, factor, trained_length):
    """Draw short, long, short again, exactly the trained length, longer, others."""
    trained, count = trained_length, 1 + size
    low = torch.tensor([4, 2 * trained, trained // 2, trained, 4 * trained])
    high = torch.tensor([12, 4 * trained, trained - 1, trained + 1, 7 * trained])
    share = torch.rand(5, generator=generator)
    lengths = (low + share * (high - low)).long().tolist()
    lengths += [whole(generator, trained, 3 * trained) for _ in range(count)]
    return lengths, 2 * whole(generator, 4 + 3 * size, 7 + 3 * size)


def _each(multiple, power=lambda dim: dim / (dim - 2)):
    """Multiply the base by ``multiple``(length, trained_length, factor)^power."""

    def rows(lengths, dim, base, factor, trained_length):
        exponents = torch.arange(0, dim, 2).double() / dim
        scale = [float(multiple(n, trained_length, factor)) for n in lengths]
        bases = base * torch.tensor(scale).double() ** power(dim)
        return bases[:, None] ** -exponents

    return rows


def _dynamic(lengths, dim, base, factor, trained_length):
    given = {"factor": factor, "trained_length": trained_length}
    rows = [dynamic_ntk_frequencies(dim, base, **given, length=n) for n in lengths]
    return torch.stack(rows)


def _needed(length, trained, factor):
    return 1 + factor * max(length / trained - 1, 0)


def _base_kept(lengths, dim, base, factor, trained_length):
    longest = [max(lengths[: i + 1]) for i in range(len(lengths))]
    return _dynamic(longest, dim, base, factor, trained_length)


def _longest_for_all(lengths, dim, base, factor, trained_length):
    longest = [max(lengths)] * len(lengths)
    return _dynamic(longest, dim, base, factor, trained_length)


def _one_on_another(lengths, dim, base, factor, trained_length):
    found = []
    for length in lengths:
        base *= _needed(length, trained_length, factor) ** (dim / (dim - 2))
        found.append(pair_frequencies(dim, base))
    return torch.stack(found)


def _interpolated(lengths, dim, base, factor, trained_length):
    scale = torch.tensor([max(n / trained_length, 1) for n in lengths])
    return pair_frequencies(dim, base) / scale[:, None]


def _real_rows(found, lengths, dim):
    """Put NaN into a row that is not real: a base below 0 gives no speeds."""
    found = torch.as_tensor(found.copy() if hasattr(found, "copy") else found)
    exact = not (found.is_floating_point() or found.is_complex())
    if exact or found.shape != (len(lengths), dim // 2):
        return found
    lost = found.isnan()
    if found.is_complex():
        lost |= found.imag.abs() > 1e-6 * found.abs()
        found = found.real
    return found.masked_fill(lost.any(-1, keepdim=True), torch.nan)


def _plain_within(got, lengths, dim, base, factor, trained_length):
    within = [i for i, length in enumerate(lengths) if length <= trained_length]
    plain = pair_frequencies(dim, base)
    return torch.allclose(got[within].double(), plain.expand(len(within), -1))


DYNAMIC_FREQUENCIES = Exercise(
    name="dynamic_frequencies",
    stem="context_extension",
    given="(lengths, dim), lengths of texts that come in turn, even dim → (texts, "
    "dim / 2) radians per position",
    right=_dynamic,
    draw=_texts_in_turn,
    view=_real_rows,
    constants={
        "base": (10_000.0, 2_000.0),
        "factor": (4.0, 2.0, 3.0),
        "trained_length": (64, 48, 96),
    },
    relative=True,
    proved="the base follows each text, plain again up to {trained_length}",
    properties=(
        Property("a text within training must have plain frequencies.", _plain_within),
    ),
    slips=(
        Slip(
            "base kept",
            "After a long text the short ones have its base. Compute it for each text "
            "anew, from the trained one.",
            _base_kept,
        ),
        Slip(
            "longest for all",
            "All texts have the base of the longest; each has its own.",
            _longest_for_all,
        ),
        Slip(
            "one on another",
            "The base of the last text is raised again; start from the trained one "
            "each time.",
            _one_on_another,
        ),
        Slip(
            "below training",
            "The formula is used below {trained_length}, too, where a falls below 1 or "
            "even below 0. Up to {trained_length} the base stays.",
            _each(lambda length, trained, factor: 1 + factor * (length / trained - 1)),
        ),
        Slip(
            "a jump",
            "It begins at 1 + factor, a jump at {trained_length}; take 1 off the ratio "
            "of the lengths.",
            _each(lambda length, trained, factor: 1 + factor * length / trained),
        ),
        Slip(
            "fixed factor",
            "Past {trained_length} the base is always raised by the factor; it follows "
            "the length that is read.",
            _each(lambda length, trained, factor: factor if length > trained else 1),
        ),
        Slip(
            "factor left out",
            "That is length / trained, the paper's, a convention of other code. Here "
            "what lies beyond 1 counts {factor:g} times.",
            _each(lambda length, trained, factor: max(length / trained, 1)),
        ),
        Slip(
            "factor times ratio",
            "The ratio of the lengths is multiplied as a whole; only what lies beyond "
            "1 counts {factor:g} times.",
            _each(
                lambda length, trained, factor: (
                    factor * length / trained if length > trained else 1
                )
            ),
        ),
        Slip(
            "exponent left out",
            "The exponent d/(d-2) is missing, so the last pair slows too little.",
            _each(_needed, lambda dim: 1),
        ),
        Slip(
            "interpolated",
            "All pairs slow alike, as in interpolation; raise the base instead.",
            _interpolated,
        ),
    ),
)

# yarn_frequencies(dim, trained_length) -> fast pairs kept, slow ones interpolated


def _head_and_length(generator, size, base, factor):
    pairs = 24 + 8 * size
    return 2 * whole(generator, pairs, pairs + 8), whole(generator, 1_500, 6_000)


def _yarn(dim, trained_length, base, factor, **options):
    given = {"factor": factor, "trained_length": trained_length}
    return yarn_frequencies(dim, base, **given, **options)


def _not_rounded(dim, trained_length, base, factor):
    return _yarn(dim, trained_length, base, factor, rounded=False)


def _edges(dim, trained_length, base):
    """Find the pairs, not whole ones, that turn 32 times in training, and once."""
    ratios = [trained_length / (2 * math.pi * beta) for beta in (32, 1)]
    return [dim / 2 * math.log(ratio, base) for ratio in ratios]


def _ramp(dim, low, high):
    return ((torch.arange(dim // 2).double() - low) / (high - low)).clamp(0, 1)


def _right_ramp(dim, trained_length, base):
    low, high = _edges(dim, trained_length, base)
    return _ramp(dim, math.floor(low), math.ceil(high))


def _slowed(ramp):
    """Slow by a function of (dim, trained_length, base)."""

    def frequencies(dim, trained_length, base, factor):
        slowed = ramp(dim, trained_length, base)
        return pair_frequencies(dim, base) * (1 - slowed * (1 - 1 / factor))

    return frequencies


def _over_turns(dim, trained_length, base):
    turns = trained_length * pair_frequencies(dim, base) / (2 * math.pi)
    return ((32 - turns) / 31).clamp(0, 1)


def _no_turn(dim, trained_length, base):
    return _right_ramp(dim, trained_length * 2 * math.pi, base)


def _extended_length(dim, trained_length, base, factor):
    return _yarn(dim, int(factor) * trained_length, base, factor)


def _ramp_turned(dim, trained_length, base):
    return 1 - _right_ramp(dim, trained_length, base)


def _rounded_inward(dim, trained_length, base):
    low, high = _edges(dim, trained_length, base)
    return _ramp(dim, math.ceil(low), math.floor(high))


def _rounded_to_nearest(dim, trained_length, base):
    low, high = _edges(dim, trained_length, base)
    return _ramp(dim, round(low), round(high))


def _no_ramp(dim, trained_length, base):
    return 1.0 * (_over_turns(dim, trained_length, base) == 1)


def _features_for_pairs(dim, trained_length, base):
    low, high = _edges(2 * dim, trained_length, base)
    return _ramp(dim, math.floor(low), math.ceil(high))


def _everything(dim, trained_length, base):
    return 1.0


def _wavelengths(dim, trained_length, base, factor):
    ramp = _right_ramp(dim, trained_length, base)
    return pair_frequencies(dim, base) / (1 - ramp + ramp * factor)


def _powers(dim, trained_length, base, factor):
    ramp = _right_ramp(dim, trained_length, base)
    return pair_frequencies(dim, base) * factor**-ramp


def _faster(dim, trained_length, base, factor):
    ramp = _right_ramp(dim, trained_length, base)
    return pair_frequencies(dim, base) * (1 - ramp * (1 - factor))


def _between(got, dim, trained_length, base, factor):
    share = got.double() / pair_frequencies(dim, base)
    return bool(((share > 0.999 / factor) & (share < 1.001)).all())


YARN_FREQUENCIES = Exercise(
    name="yarn_frequencies",
    stem="context_extension",
    given="(dim, trained_length), pairs of over 32 turns in training stay, under 1 are "
    "slowed, even dim → (dim / 2,) radians per position",
    right=_yarn,
    draw=_head_and_length,
    constants={"base": (10_000.0, 50_000.0, 500_000.0), "factor": (8.0, 4.0, 16.0)},
    relative=True,
    proved="fast pairs as they were, slow ones {factor:g} times slower, a ramp between",
    conventions={
        "a ramp over the pairs, edges not rounded, as in gpt-oss": _not_rounded,
        "a ramp over the turns, as in the paper": _slowed(_over_turns),
    },
    properties=(
        Property(
            "a pair must turn at its own speed, at the slowed one, or between.",
            _between,
        ),
    ),
    slips=(
        Slip(
            "no turn",
            "A turn is taken for one radian; it has 2π, so pairs turn less often.",
            _slowed(_no_turn),
        ),
        Slip(
            "extended length",
            "Turns are counted in the extended text; what counts is which angles "
            "training has shown.",
            _extended_length,
        ),
        Slip(
            "ramp turned",
            "Fast pairs are slowed and slow ones stay; it is the slow ones that meet "
            "new angles.",
            _slowed(_ramp_turned),
        ),
        Slip(
            "rounded inward",
            "The edges of the ramp are rounded inward; the released code rounds the "
            "lower down and the upper up.",
            _slowed(_rounded_inward),
        ),
        Slip(
            "rounded to nearest",
            "The edges of the ramp are rounded to the nearest pair; the released code "
            "rounds the lower down and the upper up.",
            _slowed(_rounded_to_nearest),
        ),
        Slip(
            "no ramp",
            "Pairs jump from plain to slowed at one turn; between 32 turns and 1 lies "
            "a ramp.",
            _slowed(_no_ramp),
        ),
        Slip(
            "features for pairs",
            "The edges are counted in features, the index in pairs, so the ramp lies "
            "twice as far. Halve dim.",
            _slowed(_features_for_pairs),
        ),
        Slip(
            "everything",
            "All pairs are slowed, as in interpolation; the fast ones stay.",
            _slowed(_everything),
        ),
        Slip(
            "wavelengths",
            "Wavelengths are blended; blend the frequencies, plain and slowed.",
            _wavelengths,
        ),
        Slip(
            "powers",
            "The ramp is the exponent of the factor; it blends plain and slowed "
            "frequencies in a straight line.",
            _powers,
        ),
        Slip(
            "faster",
            "Slow pairs are {factor:g} times faster; divide by the factor.",
            _faster,
        ),
    ),
)

# yarn_scores(query, key, factor) -> scores as YaRN's attention factor makes them


def _turned_already(generator, size, growth):
    heads, queries, keys = 2 + size, 4 + size, 7 + 2 * size
    width = 6 + 2 * size
    query = torch.randn(heads, queries, width, generator=generator)
    key = torch.randn(heads, keys, width, generator=generator)
    return query, key, float(whole(generator, 4, 41))


def _times(scale, root=0.5):
    """Multiply the scores by ``scale``(growth · ln(factor), factor)."""

    def scores(query, key, factor, growth):
        products = query.double() @ key.double().mT / query.shape[-1] ** root
        return products * scale(growth * math.log(factor), factor)

    return scores


_tempered = _times(lambda grown, factor: (1 + grown) ** 2)


def _after_softmax(query, key, factor, growth):
    grown = growth * math.log(factor)
    return _times(lambda *_: 1)(query, key, factor, growth).softmax(-1) * (
        (1 + grown) ** 2
    )


YARN_SCORES = Exercise(
    name="yarn_scores",
    stem="context_extension",
    given="(query, key, factor), (heads, query, head_dim) and (heads, key, head_dim), "
    "turned but not yet multiplied → (heads, query, key) scores before a softmax",
    right=_tempered,
    draw=_turned_already,
    constants={"growth": (0.1, 0.2, 0.05)},
    proved="the attention factor once on each side, its square in the scores",
    slips=(
        Slip(
            "one side",
            "The scores carry it once. It multiplies cos and sin of query and key, so "
            "they carry its square.",
            _times(lambda grown, factor: 1 + grown),
        ),
        Slip(
            "twice",
            "It is applied twice: scores carry the square, not its square again.",
            _times(lambda grown, factor: (1 + grown) ** 4),
        ),
        Slip(
            "left out",
            "The attention factor is missing; these are plain scores.",
            _times(lambda grown, factor: 1),
        ),
        Slip(
            "divided",
            "Scores are divided by it; more keys share the weight, so scores must "
            "grow.",
            _times(lambda grown, factor: (1 + grown) ** -2),
        ),
        Slip(
            "not plus one",
            "The 1 is missing, so a factor of 1 would wipe out all scores.",
            _times(lambda grown, factor: grown**2),
        ),
        Slip(
            "log of ten",
            "That is the logarithm to base 10; here it is the natural one.",
            _times(lambda grown, factor: (1 + grown / math.log(10)) ** 2),
        ),
        Slip(
            "log of two",
            "That is the logarithm to base 2; here it is the natural one.",
            _times(lambda grown, factor: (1 + grown / math.log(2)) ** 2),
        ),
        Slip(
            "no logarithm",
            "It grows with the factor itself; it grows with its logarithm.",
            lambda query, key, factor, growth: _times(
                lambda *_: (1 + growth * factor) ** 2
            )(query, key, factor, growth),
        ),
        Slip(
            "no root",
            "Scores are not divided by √head_dim; that stays as it was.",
            _times(lambda grown, factor: (1 + grown) ** 2, root=0),
        ),
        Slip(
            "after the softmax",
            "It multiplies weights, after a softmax; it belongs to the scores.",
            _after_softmax,
        ),
    ),
)

# read_configs(configs) -> turning features, base, factor, trained length of each

_ORIGINAL, _LONGEST = "original_max_position_embeddings", "max_position_embeddings"


def _config(generator, kind):
    """Draw a config of a kind; what one leaves out, the next one needs."""
    heads, width = whole(generator, 3, 9), 16 * whole(generator, 2, 9)
    trained, factor = 512 * whole(generator, 2, 17), whole(generator, 2, 9)
    base = 1_000.0 * whole(generator, 20, 900)
    config = {
        "hidden_size": heads * width,
        "num_attention_heads": heads,
        _LONGEST: trained if kind in _NOT_LONGER else factor * trained,
    }
    return config | _settings(kind, width, base, float(factor), trained)


def _settings(kind, width, base, factor, trained):
    """Write what settles the frequencies, where a config of the kind has it."""
    beside, scaled = {"rope_theta": base}, {"factor": factor}
    original, half = {_ORIGINAL: trained}, {"partial_rotary_factor": 0.5}
    yarn = {"rope_type": "yarn"} | beside | original
    linear = {"rope_type": "linear"} | scaled
    older = {"type": "yarn"} | scaled | original
    return {
        "plain": beside | {"rope_scaling": None},
        "no base": {"rope_theta": None},
        "linear": {"rope_scaling": linear, "partial_rotary_factor": 0.25},
        "yarn": beside | {"head_dim": width + 16, "rope_scaling": older},
        "no factor": half | {"head_dim": None, "rope_parameters": yarn},
        "share within": {
            "rope_scaling": None,
            "rope_parameters": yarn | scaled | half,
        },
        "original beside": beside
        | original
        | {"rope_scaling": {"type": "longrope"} | scaled},
    }[kind]


_NOT_LONGER = ("plain", "linear", "no base")
_KINDS = (*_NOT_LONGER, "yarn", "no factor", "share within", "original beside")


def _configs(generator, size, default_base):
    more = [whole(generator, 0, len(_KINDS)) for _ in range(size)]
    kinds = list(_KINDS) + [_KINDS[i] for i in more]
    order = torch.randperm(len(kinds), generator=generator).tolist()
    return ([_config(generator, kinds[i]) for i in order],)


def _entry(config):
    return config.get("rope_scaling") or config.get("rope_parameters") or {}


def _given(config):
    """Lay a config flat, without what is None."""
    flat = {**config, **_entry(config)}
    return {key: value for key, value in flat.items() if value is not None}


def _found(config, default_base):
    given = {key: value for key, value in config.items() if value is not None}
    _, _, found = rope_config.read({"rope_theta": default_base, **given})
    return [found[name] for name in ("dim", "base", "factor", "trained_length")]


def _none_as_nan(rows, configs):
    """Put NaN where a list has None: no number was found."""
    if not isinstance(rows, list):
        return rows
    return [
        [torch.nan if value is None else value for value in row]
        if isinstance(row, list | tuple)
        else row
        for row in rows
    ]


def _reading(**wrong):
    """Read each config, and put functions of it in the place of some numbers."""

    def read_configs(configs, default_base):
        names, rows = ("dim", "base", "factor", "trained_length"), []
        for config in configs:
            row = dict(zip(names, _found(config, default_base), strict=True))
            row |= {name: wrong[name](config, default_base) for name in wrong}
            rows.append([row[name] for name in names])
        return torch.tensor(rows).double()

    return read_configs


def _shared(config):
    return config["hidden_size"] // config["num_attention_heads"]


def _divided_width(config, default_base):
    return _shared(config) * _given(config).get("partial_rotary_factor", 1)


def _whole_head(config, default_base):
    return config.get("head_dim") or _shared(config)


def _share_beside(config, default_base):
    share = config.get("partial_rotary_factor") or 1
    return _whole_head(config, default_base) * share


def _share_within(config, default_base):
    share = _entry(config).get("partial_rotary_factor") or 1
    return _whole_head(config, default_base) * share


def _base_beside(config, default_base):
    return config.get("rope_theta") or default_base


def _base_as_given(config, default_base):
    base = {**config, **_entry(config)}.get("rope_theta", default_base)
    return math.nan if base is None else base


def _trained_in_entry(config, default_base):
    return _entry(config).get(_ORIGINAL, config[_LONGEST])


def _trained_beside(config, default_base):
    return config.get(_ORIGINAL, config[_LONGEST])


def _older_entry(configs, default_base):
    newer = [{**config, "rope_parameters": None} for config in configs]
    return _reading()(newer, default_base)


def _entry_of_none(configs, default_base):
    taken = [
        config | {"rope_parameters": None} if "rope_scaling" in config else config
        for config in configs
    ]
    return _reading()(taken, default_base)


def _columns_swapped(configs, default_base):
    return _reading()(configs, default_base)[:, [0, 2, 1, 3]]


def _last_columns_swapped(configs, default_base):
    return _reading()(configs, default_base)[:, [0, 1, 3, 2]]


READ_CONFIGS = Exercise(
    name="read_configs",
    stem="context_extension",
    given="(configs), a list of dictionaries → (configs, 4): features that turn, base, "
    "factor, trained length",
    right=_reading(),
    draw=_configs,
    view=_none_as_nan,
    constants={"default_base": (10_000.0, 5_000.0, 15_000.0)},
    proved="widths, bases, factors and trained lengths, wherever a config has them",
    slips=(
        Slip(
            "head_dim overlooked",
            "The width is hidden_size / num_attention_heads throughout; head_dim comes "
            "first where it is given.",
            _reading(dim=_divided_width),
        ),
        Slip(
            "whole head",
            "All features of a head turn; where partial_rotary_factor is given, it is "
            "that share.",
            _reading(dim=_whole_head),
        ),
        Slip(
            "share beside",
            "partial_rotary_factor is read beside the entry alone; it may stand "
            "within.",
            _reading(dim=_share_beside),
        ),
        Slip(
            "share within",
            "partial_rotary_factor is read within the entry alone; it may stand "
            "beside it.",
            _reading(dim=_share_within),
        ),
        Slip(
            "default base",
            "The base is {default_base:,.0f} throughout; that is for configs that give "
            "none.",
            _reading(base=lambda config, default_base: default_base),
        ),
        Slip(
            "base beside",
            "The base is read beside the entry alone; it may stand within "
            "rope_parameters.",
            _reading(base=_base_beside),
        ),
        Slip(
            "base None",
            "A rope_theta of None counts as absent: get(key, default) gives None "
            "there, since the key exists.",
            _reading(base=_base_as_given),
        ),
        Slip(
            "no factor is 1",
            "Where YaRN's factor is not given, it is the longest length over the "
            "original one, not 1.",
            _reading(factor=lambda config, _: _entry(config).get("factor", 1)),
        ),
        Slip(
            "factor turned",
            "The factor is turned over: that is the scale of the frequencies, 1 / "
            "factor.",
            _reading(factor=lambda config, base: 1 / _found(config, base)[2]),
        ),
        Slip(
            "longest",
            "The trained length is max_position_embeddings throughout, the extended "
            "one in some. The original one comes first.",
            _reading(trained_length=lambda config, _: config[_LONGEST]),
        ),
        Slip(
            "original in the entry",
            "The original length is read in the entry alone; it may stand beside it.",
            _reading(trained_length=_trained_in_entry),
        ),
        Slip(
            "original beside",
            "The original length is read beside the entry alone; it may stand within.",
            _reading(trained_length=_trained_beside),
        ),
        Slip(
            "older entry",
            "Only rope_scaling is read; newer configs have rope_parameters.",
            _older_entry,
        ),
        Slip(
            "entry of None",
            "Where rope_scaling is None, the entry is lost that stands under "
            "rope_parameters: get(key, other) takes other only if the key is missing.",
            _entry_of_none,
        ),
        Slip(
            "base and factor swapped",
            "Base and factor have changed places; the base comes first.",
            _columns_swapped,
        ),
        Slip(
            "last columns swapped",
            "Factor and trained length have changed places; the length comes last.",
            _last_columns_swapped,
        ),
    ),
)

# matching_base() -> base with which the last pair slows as much as by interpolation


def _raised(power):
    """Raise the base by factor^power(dim)."""
    return lambda dim, base, factor: base * factor ** power(dim)


MATCHING_BASE = Exercise(
    name="matching_base",
    stem="context_extension",
    given="() → the base with which the slowest pair of `dim` features turns `factor` "
    "times slower than with `base`, to 0.1 %",
    right=_raised(lambda dim: dim / (dim - 2)),
    constants={
        "dim": (128, 64, 96),
        "base": (500_000, 20_000, 300_000),
        "factor": (6, 12, 20),
    },
    relative=True,
    tolerance=1e-3,
    proved="the first pair keeps its speed, the last is {factor} times slower",
    slips=(
        Slip(
            "times the factor",
            "The last exponent is (d-2)/d, a little below 1, so the base must rise a "
            "little more than {factor} times.",
            _raised(lambda dim: 1),
        ),
        Slip(
            "exponent turned",
            "The exponent is turned over: solve base^(-(d-2)/d) for the base.",
            _raised(lambda dim: (dim - 2) / dim),
        ),
        Slip(
            "one feature off",
            "The last pair has the exponent (d-2)/d, not (d-1)/d: exponents go in "
            "steps of 2.",
            _raised(lambda dim: dim / (dim - 1)),
        ),
        Slip(
            "last but one",
            "That suits the last pair but one.",
            _raised(lambda dim: dim / (dim - 4)),
        ),
        Slip(
            "squared",
            "That slows the last pair about {factor} times too much: two knobs in one.",
            _raised(lambda dim: 2 * dim / (dim - 2)),
        ),
        Slip(
            "lowered",
            "That base is smaller, so pairs turn faster. Multiply.",
            _raised(lambda dim: -dim / (dim - 2)),
        ),
        Slip(
            "multiple alone",
            "That is what multiplies the base, which some loaders ask for; the base "
            "itself is asked.",
            lambda dim, base, factor: factor ** (dim / (dim - 2)),
        ),
        Slip(
            "as it was",
            "That is the base as it was: no pair slows.",
            _raised(lambda dim: 0),
        ),
    ),
)

EXERCISES = (
    DYNAMIC_FREQUENCIES,
    YARN_FREQUENCIES,
    YARN_SCORES,
    READ_CONFIGS,
    MATCHING_BASE,
)
