"""ALiBi: a penalty per step of distance and head, and the same as one more feature."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from coursekit import _require
from coursekit.relative import relative_positions


def alibi_slopes(num_heads: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Give each head its penalty per step, as the authors' code does.

    For 2^k heads a geometric series that ends at 2^-8. Another count takes the series
    of the power of two below, then every second slope of its double: so 6 heads are
    not sorted, and a checkpoint needs them so.

    Args: ``num_heads``; ``dtype``, that of the result.
    Returns: (heads,), above 0.

    Raises:
        ValueError: If ``num_heads`` is no whole number above 0.

    Example:
        >>> alibi_slopes(6)
        tensor([0.2500, 0.0625, 0.0156, 0.0039, 0.5000, 0.1250])

    Source: Press et al. 2022, section 3 and the released code, arXiv:2108.12409.
    """
    _require.at_least("num_heads", num_heads)
    below = 2 ** (int(num_heads).bit_length() - 1)
    extra = geometric_slopes(2 * below, dtype)[::2][: num_heads - below]
    return torch.cat((geometric_slopes(below, dtype), extra))


def geometric_slopes(num_heads: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Give the slopes as the paper's text reads: 2^(-8h / num_heads) from h = 1 on.

    Equal to ``alibi_slopes`` for a power of two; no released model has the others.

    Args: As ``alibi_slopes``.
    Returns: (heads,), falling to 2^-8.
    """
    _require.at_least("num_heads", num_heads)
    exponents = [-8 * head / num_heads for head in range(1, num_heads + 1)]
    return torch.tensor([2.0**exponent for exponent in exponents], dtype=dtype)


def alibi_bias(
    num_heads: int, query_positions: Tensor, key_positions: Tensor
) -> Tensor:
    """Compute -slope · |key minus query|, to be added after the 1/√head_dim.

    It is the same for past and future, so a mask must hide the future; without one a
    sentence and its reverse look alike.

    Args:
        num_heads: Number of heads.
        query_positions: (query,) or (batch, query).
        key_positions: (key,) or (batch, key); in decoding, all keys of the cache.

    Returns:
        (heads, query, key), or (batch, heads, query, key) where a batch was given:
        float32, or float64 for float64 positions; never above 0.

    Example:
        >>> alibi_bias(1, torch.tensor([200]), torch.tensor([0, 100, 200]))
        tensor([[[-0.7812, -0.3906,  0.0000]]])

    Source: Press et al. 2022, section 3, arXiv:2108.12409.
    """
    steps_away = -relative_positions(query_positions, key_positions).abs()
    wide = torch.promote_types(steps_away.dtype, torch.float32)
    slopes = alibi_slopes(num_heads, wide).to(steps_away.device)
    return slopes[:, None, None] * steps_away


def kerple_bias(
    scale: Tensor, rate: Tensor, query_positions: Tensor, key_positions: Tensor
) -> Tensor:
    """Compute -scale · log(1 + rate · |offset|): ALiBi's learned cousin, flat far away.

    Args: ``scale`` and ``rate``, (heads,), both above 0, such as the exponential of a
        parameter; positions as ``alibi_bias``.
    Returns: As ``alibi_bias``.

    Raises:
        ValueError: If ``scale`` and ``rate`` are not (heads,) both.

    Source: Chi et al. 2022, section 4, the logarithmic variant, arXiv:2205.09921.
    """
    if scale.dim() != 1 or scale.shape != rate.shape:
        raise ValueError(
            f"scale is {tuple(scale.shape)} and rate {tuple(rate.shape)}, but each "
            f"head has its own, so both must be (heads,). Use .flatten() or .expand()."
        )
    distance = relative_positions(query_positions, key_positions).abs()
    return -scale[:, None, None] * torch.log1p(rate[:, None, None] * distance)


def fold_alibi(
    query: Tensor, key: Tensor, key_positions: Tensor
) -> tuple[Tensor, Tensor]:
    """Put causal ALiBi into one more feature, with no (heads, query, key) tensor.

    Under a causal mask -m·(i - j) is m·j less a constant of the row, which the softmax
    does not see. So each query asks with its head's slope and each key answers with
    its position, counted from the middle key to keep rounding small. The query also
    makes up for torch's default scale, now 1/√(head_dim + 1): pass no other.

    Torch's fast kernel wants a value as wide: ``causal_alibi`` sees to that.

    Args:
        query: (batch, heads, query, head_dim), float32 or float64.
        key: (batch, heads or fewer, key, head_dim).
        key_positions: (key,) or (batch, key), not falling.

    Returns:
        query and key, each (…, head_dim + 1).

    Raises:
        ValueError: If shapes do not fit, or in half precision, which rounds positions.
    """
    _check_fold(query, key, key_positions)
    head_dim, middle = query.shape[-1], key.shape[-2] // 2
    slopes = alibi_slopes(query.shape[1], torch.float64) * math.sqrt(head_dim + 1)
    asks = slopes.to(query)[:, None, None].expand(*query.shape[:-1], 1)
    centre = key_positions[..., middle : middle + 1]
    steps = relative_positions(centre, key_positions).transpose(-2, -1)
    answers = steps.to(key).expand(*key.shape[:-1], 1)
    query = query * math.sqrt((head_dim + 1) / head_dim)
    return torch.cat((query, asks), dim=-1), torch.cat((key, answers), dim=-1)


def causal_alibi(
    query: Tensor, key: Tensor, value: Tensor, positions: Tensor
) -> Tensor:
    """Attend causally with ALiBi on torch's fast path, which a bias would leave.

    That path wants query, key and value of one width, or it builds all scores after
    all; so the value gets a zero feature too, which is cut from the output.

    Args: ``query``, ``key`` and ``value`` of one length and width, and the
        ``positions`` of all three, as in ``fold_alibi``.
    Returns: (batch, heads, length, head_dim).

    Raises:
        ValueError: As ``fold_alibi``, or if ``value`` or the lengths differ.
    """
    _require.ends_with("value", value, tuple(query.shape[-2:]))
    _require.ends_with("key", key, tuple(query.shape[-2:]))
    query, key = fold_alibi(query, key, positions)
    output = torch.empty_like(value)
    for head in range(value.shape[1]):  # one wider value and output at a time
        one = slice(head, head + 1)
        padded = query[:, one], key[:, one], F.pad(value[:, one], (0, 1))
        attend = F.scaled_dot_product_attention
        output[:, one] = attend(*padded, is_causal=True)[..., :-1]
    return output


def _check_fold(query: Tensor, key: Tensor, key_positions: Tensor) -> None:
    """Refuse what would fold into another bias than ALiBi's."""
    _require.positions("key_positions", key_positions)
    _require.ends_with("key", key, (key_positions.shape[-1], query.shape[-1]))
    rows = tuple(key_positions.shape[:-1])
    if query.dim() != 4 or key.dim() != 4 or rows not in ((), (1,), key.shape[:1]):
        raise ValueError(
            f"query is {tuple(query.shape)}, key {tuple(key.shape)} and key_positions "
            f"{tuple(key_positions.shape)}, but heads have slopes, so the first two "
            f"are (batch, heads, length, head_dim), and the last (key,) or (batch, "
            f"key). Use split_heads."
        )
    if not {query.dtype, key.dtype} <= {torch.float32, torch.float64}:
        raise ValueError(
            f"query is {query.dtype} and key {key.dtype}, but a position must fit into "
            f"a feature, and half precision rounds it. Use .float(), or alibi_bias."
        )
