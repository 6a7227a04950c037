"""Other frequencies for RoPE, to read more positions than a model was trained on.

``dim`` is the even number of features that turn, ``base`` the ratio of the wavelengths
over them, ``factor`` the new length / the trained one, at least 1. What is out of range
is a ValueError, and nothing is kept from one call to the next. The methods that slow
each pair by an amount of its own come from ``per_pair``.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor

from coursekit import _require, rope_config
from coursekit.per_pair import (
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    unscaled_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from coursekit.sinusoidal import pair_frequencies


class Scaled(NamedTuple):
    """What a model rotates with."""

    frequencies: Tensor  # (dim / 2,) radians per position, float64
    attention_factor: float  # multiplies cos and sin once: scores carry its square


def interpolated_frequencies(
    dim: int, base: float = 10_000.0, *, factor: float
) -> Tensor:
    """Slow every pair ``factor`` times: the same as dividing the positions by it.

    Args: As the module says. llama.cpp asks for 1 / factor, the frequency scale.
    Returns: Radians per position, (dim / 2,) float64.

    Source: Chen et al. 2023, section 3, arXiv:2306.15595.
    """
    return unscaled_frequencies(dim, base, factor) / factor


def ntk_frequencies(dim: int, base: float = 10_000.0, *, factor: float) -> Tensor:
    """Raise the base: the first pair keeps its speed, the last slows ``factor`` times.

    The new base is base · factor^(dim / (dim - 2)). Others take that base itself
    (llama.cpp) or what multiplies it (alpha in some loaders) instead of ``factor``.

    Args: As the module says, ``dim`` at least 4.
    Returns: Radians per position, (dim / 2,) float64.

    Source: bloc97 2023; Peng et al. 2023, definition 1, arXiv:2309.00071.
    """
    _require.at_least("dim", dim, 4)
    unscaled_frequencies(dim, base, factor)
    return pair_frequencies(dim, base * factor ** (dim / (dim - 2)))


def dynamic_ntk_frequencies(
    dim: int, base: float = 10_000.0, *, factor: float, trained_length: int, length: int
) -> Tensor:
    """Raise the base as far as ``length`` needs, and not at all within training.

    NTK by 1 + factor · (length / trained_length - 1), as in transformers; the paper's
    length / trained_length is ``factor`` 1. A short text after a long one gets the
    plain frequencies. Keys rotated for another length do not fit: cache them before.

    Args: As the module says; ``length`` counts the positions of this text.
    Returns: Radians per position, (dim / 2,) float64.

    Source: emozilla 2023; Peng et al. 2023, section 3.3, arXiv:2309.00071.
    """
    unscaled_frequencies(
        dim, base, factor, trained_length=trained_length, length=length
    )
    beyond = max(length - trained_length, 0) / trained_length
    return ntk_frequencies(dim, base, factor=1 + factor * beyond)


def proportional_frequencies(
    dim: int, base: float = 10_000.0, *, rotated_share: float, factor: float = 1.0
) -> Tensor:
    """Let the first pairs turn as in a whole head, and the rest stand still: 0.

    Partial rotation as in GPT-NeoX makes ``dim`` smaller instead, and so spreads all
    wavelengths over fewer pairs.

    Args: As the module says; ``rotated_share`` from 0 to 1, of whole pairs.
    Returns: Radians per position, (dim / 2,) float64.

    Source: Gemma 4, as in transformers.
    """
    plain = interpolated_frequencies(dim, base, factor=factor)
    if not 0 <= rotated_share <= 1:
        raise ValueError(
            f"rotated_share is {rotated_share}, but it is a part of all pairs, so it "
            f"must lie between 0 and 1. Use 0.25 for a quarter."
        )
    return plain * (torch.arange(dim // 2) < int(rotated_share * dim // 2))


METHODS = {  # the rope_type of a config → frequencies and, if any, attention factor
    "default": (pair_frequencies,),
    "linear": (interpolated_frequencies,),
    "ntk": (ntk_frequencies,),
    "dynamic": (dynamic_ntk_frequencies,),
    "yarn": (yarn_frequencies, yarn_attention_factor),
    "llama3": (llama3_frequencies,),
    "longrope": (longrope_frequencies, longrope_attention_factor),
    "proportional": (proportional_frequencies,),
}


def from_config(
    config: Mapping[str, Any], *, length: int | None = None, kind: str | None = None
) -> Scaled:
    """Read the frequencies of a model out of its published ``config.json``.

    Args:
        config: The dictionary as it stands; ``rope_config.read`` says what is read.
        length: Positions of the text, for dynamic NTK and LongRoPE; left out, the text
            is within training.
        kind: Which kind of attention, where the config has an entry for each.

    Returns:
        Frequencies, and the attention factor: 1.0 where the type has none.

    Raises:
        ValueError: If a type, key or kind is not known, a value missing or not right.
    """
    rope_type, keys, found = rope_config.read(config, kind=kind)
    if rope_type not in METHODS:
        raise ValueError(
            f"rope_type is {rope_type!r}, which is not known here. Known: "
            f"{', '.join(METHODS)}, and su, the older name of longrope."
        )
    scale, *weigh = METHODS[rope_type]
    known = {"attention_factor"} if weigh else set()
    known |= {name for one in (scale, *weigh) for name in signature(one).parameters}
    if unknown := [key for name, key in keys.items() if name not in known]:
        raise ValueError(
            f"{', '.join(unknown)}: not understood for rope_type {rope_type!r}, but "
            f"the numbers may depend on it. Leave out only what changes nothing."
        )
    _require.even("dim", found["dim"])
    found["length"] = found.get("trained_length", 1) if length is None else length
    _require.at_least("length", found["length"])
    factor = found.get("attention_factor", _call(weigh[0], found) if weigh else 1.0)
    _require.positive("attention_factor", factor)
    return Scaled(_call(scale, found), float(factor))


def _call(function: Callable[..., Any], found: Mapping[str, Any]) -> Any:
    """Call ``function`` with what was found under the names of its arguments."""
    arguments = signature(function).parameters.values()
    missing = [
        a.name for a in arguments if a.default is a.empty and a.name not in found
    ]
    if missing:
        keys = {ours: key for key, ours in rope_config.NAMES.items()}
        raise ValueError(
            f"config has no {' and no '.join(keys.get(m, m) for m in missing)}, but "
            f"{function.__name__} needs it. Add it as the model was published."
        )
    return function(**{a.name: found[a.name] for a in arguments if a.name in found})
