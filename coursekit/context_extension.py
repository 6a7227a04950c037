"""Other frequencies for RoPE: read more positions than a model was trained on."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from coursekit import _require, rope_config
from coursekit.sinusoidal import pair_frequencies


class Scaled(NamedTuple):
    """What to rotate with: angles = position · frequencies, cos and sin · factor."""

    frequencies: Tensor  # (dim / 2,) radians per position, float64
    attention_factor: float  # multiplies cos and sin once, so scores get its square


def interpolated_frequencies(
    dim: int, base: float = 10_000.0, *, factor: float
) -> Tensor:
    """Slow every pair ``factor`` times, as if positions were divided by it.

    In this module ``dim`` is even, ``base`` above 0, ``factor`` (new length / trained
    length) at least 1, else a ValueError; each function returns radians per position,
    (dim / 2,) float64, and keeps nothing from one call to the next.

    Source: Chen et al. 2023, section 3, arXiv:2306.15595. (llama.cpp: scale 1/factor.)
    """
    _require.even("dim", dim)
    return pair_frequencies(dim, base) / _stretch(factor)


def ntk_frequencies(dim: int, base: float = 10_000.0, *, factor: float) -> Tensor:
    """Raise the base: the first pair keeps its speed, the last slows ``factor`` times.

    The base is multiplied by factor^(dim / (dim - 2)), so ``dim`` is at least 4.
    llama.cpp and exllama leave this to the user, who gives the raised base or an alpha.

    Source: bloc97 2023; Peng et al. 2023, definition 1, arXiv:2309.00071.
    """
    _require.even("dim", dim)
    _require.at_least("dim", dim, 4)
    _require.positive("base", base)
    return pair_frequencies(dim, base * _stretch(factor) ** (dim / (dim - 2)))


def dynamic_ntk_frequencies(
    dim: int, base: float = 10_000.0, *, factor: float, trained_length: int, length: int
) -> Tensor:
    """Raise the base just as far as this ``length`` needs, and not within training.

    NTK with the factor 1 + factor · (length - trained_length) / trained_length. A short
    text after a long one gets the plain frequencies again, since nothing is stored;
    keys that were cached under other frequencies must be rotated anew.

    Source: emozilla 2023, in the form transformers uses. Peng et al., section 3.3,
    name length / trained_length instead (here: ``factor`` 1), as Qwen's first code.
    """
    _require.at_least("trained_length", trained_length)
    _require.at_least("length", length)
    beyond = max(length - trained_length, 0) / trained_length
    return ntk_frequencies(dim, base, factor=1 + _stretch(factor) * beyond)


def yarn_frequencies(
    dim: int,
    base: float = 10_000.0,
    *,
    factor: float,
    trained_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    rounded: bool = True,
) -> Tensor:
    """Keep the pairs that turn often in training, interpolate those that turn seldom.

    Pairs of over ``beta_fast`` turns within ``trained_length`` stay, those of under
    ``beta_slow`` slow ``factor`` times, and a linear ramp over the index lies between.
    The paper ramps over the turns instead. ``rounded`` moves the ramp's edges outward
    to whole pairs, as the released code and transformers; gpt-oss does not.

    Raises:
        ValueError: If ``base`` is not above 1, ``beta_fast`` is below ``beta_slow``, or
            the ramp misses the pairs: there the released code scales the wrong ones.

    Source: Peng et al. 2023, section 3.2, arXiv:2309.00071, and its released code.
    """
    _require.even("dim", dim)
    _require.at_least("trained_length", trained_length)
    low, high = (
        _pair_of_turns(name, turns, dim, base, trained_length)
        for name, turns in (("beta_fast", beta_fast), ("beta_slow", beta_slow))
    )
    if rounded:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if beta_fast < beta_slow or high < low:
        raise ValueError(
            f"beta_fast {beta_fast} and beta_slow {beta_slow} put a ramp from pair "
            f"{low} to {high}, but it must rise, within the {dim // 2} pairs. Use "
            f"beta_fast above beta_slow, or turns that fit trained_length."
        )
    pairs = torch.arange(dim // 2, dtype=torch.float64)
    slowed = ((pairs - low) / (high - low or 0.001)).clamp(0, 1)
    return pair_frequencies(dim, base) * (1 - slowed + slowed / _stretch(factor))


def yarn_attention_factor(
    factor: float, *, mscale: float | None = None, mscale_all_dim: float | None = None
) -> float:
    """Compute YaRN's multiplier of cos and sin, 0.1 · ln(factor) + 1.

    Apply it once to cos and sin of both query and key, or its square once to the
    scores. With both scales (0 is none) it is (0.1 · mscale · ln(factor) + 1) over the
    same with ``mscale_all_dim``. One scale alone counts for nothing here and in
    transformers; DeepSeek's own code uses a lone ``mscale``, and also multiplies its
    softmax scale by the square of the denominator, which is no part of this number.

    Source: Peng et al. 2023, section 3.4, arXiv:2309.00071; DeepSeek-V2's code.
    """
    log = 0.1 * math.log(_stretch(factor))
    if not (mscale and mscale_all_dim):
        return log + 1
    _require.positive("mscale", mscale)
    _require.positive("mscale_all_dim", mscale_all_dim)
    return (log * mscale + 1) / (log * mscale_all_dim + 1)


def llama3_frequencies(
    dim: int,
    base: float = 10_000.0,
    *,
    factor: float,
    low_factor: float = 1.0,
    high_factor: float = 4.0,
    trained_length: int = 8192,
) -> Tensor:
    """Slow the pairs of under ``low_factor`` turns, keep those of over ``high_factor``.

    Like YaRN, but the blend is linear in the turns within ``trained_length``.

    Raises:
        ValueError: If ``high_factor`` is not above ``low_factor``.

    Source: Meta 2024, llama-models, ``apply_scaling``.
    """
    _require.even("dim", dim)
    _require.at_least("trained_length", trained_length)
    _require.positive("low_factor", low_factor)
    _require.positive("high_factor", high_factor)
    if high_factor <= low_factor:
        raise ValueError(
            f"high_factor is {high_factor} and low_factor {low_factor}, but the blend "
            f"rises from low to high. Use a high_factor above {low_factor}."
        )
    frequencies = pair_frequencies(dim, base)
    turns = trained_length * frequencies / (2 * math.pi)
    kept = ((turns - low_factor) / (high_factor - low_factor)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / _stretch(factor))


def longrope_frequencies(
    dim: int,
    base: float = 10_000.0,
    *,
    short: Sequence[float],
    long: Sequence[float],
    trained_length: int,
    length: int,
) -> Tensor:
    """Divide each frequency by its own searched number.

    Args:
        dim: Number of features that turn.
        base: Ratio of the wavelengths over the whole width.
        short: dim / 2 divisors for a ``length`` up to ``trained_length``.
        long: dim / 2 divisors for every longer ``length``, position 0 included.
        trained_length: Positions in pre-training.
        length: Positions in this text.

    Source: Ding et al. 2024, arXiv:2402.13753, as Phi-3 and transformers switch.
    """
    _require.even("dim", dim)
    _require.at_least("trained_length", trained_length)
    _require.at_least("length", length)
    for name, divisors in (("short", short), ("long", long)):
        if len(divisors) != dim // 2:
            raise ValueError(
                f"{name} has {len(divisors)} entries, but dim {dim} has {dim // 2} "
                f"pairs with one divisor each. Use {dim // 2} numbers."
            )
        for index, divisor in enumerate(divisors):
            _require.positive(f"{name}[{index}]", float(divisor))
    chosen = long if length > trained_length else short
    return pair_frequencies(dim, base) / torch.as_tensor(chosen, dtype=torch.float64)
