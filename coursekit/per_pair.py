"""Slow each pair by an amount of its own: YaRN, Llama 3 and LongRoPE.

``dim`` is the even number of features that turn, ``base`` the ratio of the wavelengths
over them, ``factor`` the new length / the trained one, at least 1. What is out of range
is a ValueError. An attention factor multiplies cos and sin of query and key once, so
that the scores carry its square.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from coursekit import _require
from coursekit.sinusoidal import pair_frequencies


def unscaled_frequencies(
    dim: int, base: float, factor: float = 1.0, **lengths: int
) -> Tensor:
    """Check what the scalings share and return the frequencies they start from.

    Args: As the module says; ``lengths``, each at least 1, under their names.
    Returns: Radians per position, (dim / 2,) float64.
    """
    _require.even("dim", dim)
    _at_least_one(factor)
    for name, length in lengths.items():
        _require.at_least(name, length)
    return pair_frequencies(dim, base)


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
    """Keep pairs of over ``beta_fast`` turns in training, slow under ``beta_slow``.

    Between them lies a ramp over the pair's index, its edges ``rounded`` outward, as
    in the released code and transformers. gpt-oss rounds nothing; the paper's ramp is
    over the turns. A ramp beside all pairs makes the released code slow the wrong ones.

    Args: As the module says, ``base`` above 1; ``trained_length`` not the extended.
    Returns: Radians per position, (dim / 2,) float64.

    Source: Peng et al. 2023, section 3.2, arXiv:2309.00071.
    """
    plain = unscaled_frequencies(dim, base, factor, trained_length=trained_length)
    _require.positive("beta_fast", beta_fast)
    _require.positive("beta_slow", beta_slow)
    if base <= 1 or beta_fast < beta_slow:
        raise ValueError(
            f"base is {base}, beta_fast {beta_fast} and beta_slow {beta_slow}, but a "
            f"later pair must turn less often. Use a base above 1, such as 10000.0, "
            f"and a beta_fast of {beta_slow} or more."
        )
    ratios = [trained_length / (2 * math.pi * beta) for beta in (beta_fast, beta_slow)]
    low, high = (dim / 2 * math.log(ratio) / math.log(base) for ratio in ratios)
    if rounded:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, min(high, 0)), min(high, max(low, dim - 1))
    index = torch.arange(dim // 2, dtype=torch.float64)
    slowed = ((index - low) / (high - low or 0.001)).clamp(0, 1)
    return plain * (1 - slowed * (1 - 1 / factor))


def yarn_attention_factor(
    factor: float, *, mscale: float | None = None, mscale_all_dim: float | None = None
) -> float:
    """Compute YaRN's attention factor, 0.1 · ln(factor) + 1.

    With both scales (0 is none) it is 0.1 · mscale · ln(factor) + 1 over the same with
    ``mscale_all_dim``. One alone counts for nothing, as in transformers; DeepSeek's
    code heeds a lone ``mscale``, and multiplies its softmax scale, apart from this, by
    the square of the denominator.

    Args: ``factor`` as the module says; DeepSeek's two scales.
    Returns: The attention factor, 1.0 for ``factor`` 1.

    Source: Peng et al. 2023, section 3.4, arXiv:2309.00071; DeepSeek-V2's code.
    """
    growth = 0.1 * math.log(_at_least_one(factor))
    if not (mscale and mscale_all_dim):
        return growth + 1
    _require.positive("mscale", mscale)
    _require.positive("mscale_all_dim", mscale_all_dim)
    return (growth * mscale + 1) / (growth * mscale_all_dim + 1)


def llama3_frequencies(
    dim: int,
    base: float = 10_000.0,
    *,
    factor: float,
    low_factor: float = 1.0,
    high_factor: float = 4.0,
    trained_length: int = 8192,
) -> Tensor:
    """Keep pairs of over ``high_factor`` turns in training, slow under ``low_factor``.

    Between them the blend is linear in the turns, unlike YaRN's in the index.

    Args: As the module says; the limits in turns within ``trained_length``.
    Returns: Radians per position, (dim / 2,) float64.

    Source: Meta 2024, llama-models, ``apply_scaling``.
    """
    plain = unscaled_frequencies(dim, base, factor, trained_length=trained_length)
    _require.positive("low_factor", low_factor)
    _require.positive("high_factor", high_factor)
    if high_factor <= low_factor:
        raise ValueError(
            f"high_factor is {high_factor}, but the blend rises from low_factor, so it "
            f"must be above {low_factor}. Use {4 * low_factor}."
        )
    turns = trained_length * plain / (2 * math.pi)
    slowed = ((high_factor - turns) / (high_factor - low_factor)).clamp(0, 1)
    return plain * (1 - slowed * (1 - 1 / factor))


def longrope_frequencies(
    dim: int,
    base: float = 10_000.0,
    *,
    short: Sequence[float],
    long: Sequence[float],
    trained_length: int,
    length: int,
) -> Tensor:
    """Divide each frequency by a number that was searched for it.

    Args: As the module says; ``short`` holds dim / 2 divisors for a ``length`` up to
        ``trained_length``, ``long`` for a longer one, all its positions included.
    Returns: Radians per position, (dim / 2,) float64.

    Source: Ding et al. 2024, arXiv:2402.13753, switched as in Phi-3.
    """
    plain = unscaled_frequencies(
        dim, base, trained_length=trained_length, length=length
    )
    for name, divisors in (("short", short), ("long", long)):
        if len(divisors) != dim // 2:
            raise ValueError(
                f"{name} has {len(divisors)} entries, but dim {dim} has {dim // 2} "
                f"pairs with a divisor each. Use {dim // 2} numbers."
            )
        for index, divisor in enumerate(divisors):
            _require.positive(f"{name}[{index}]", divisor)
    chosen = long if length > trained_length else short
    return plain / torch.as_tensor(chosen, dtype=torch.float64)


def longrope_attention_factor(factor: float, *, trained_length: int) -> float:
    """Compute √(1 + ln(factor) / ln(trained_length)), also for short texts as Phi-3.

    Args: As the module says, ``trained_length`` at least 2.
    Returns: The attention factor, 1.0 for ``factor`` 1.

    Source: Ding et al. 2024, arXiv:2402.13753, and Phi-3's code.
    """
    _require.at_least("trained_length", trained_length, 2)
    return math.sqrt(1 + math.log(_at_least_one(factor)) / math.log(trained_length))


def _at_least_one(factor: float) -> float:
    """Return ``factor`` unless a text would be shorter than in training."""
    _require.positive("factor", factor)
    if factor < 1:
        raise ValueError(
            f"factor is {factor}, but a text is so many times longer than in training, "
            f"so it must be at least 1. Use {1 / factor:g} if frequencies scale by it."
        )
    return factor
