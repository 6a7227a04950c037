"""The three doors, all closed: the base class of each position method."""

import torch
from torch import Tensor, nn


class NoPosition(nn.Module):
    """Open no door; each method is a child of this class that overrides one."""

    one_bias = False  # True: the bias reads no query, so one serves all layers

    def __init_subclass__(cls, **options) -> None:
        """Let a child's own door count, not the short cut that it inherits."""
        super().__init_subclass__(**options)
        for door, short_cut in (("rotate", "turns"), ("bias", "one_bias")):
            if door in vars(cls) and short_cut not in vars(cls):
                setattr(cls, short_cut, getattr(NoPosition, short_cut))

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Pass door 1: change embeddings, (batch, length, d_model)."""
        return x

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Pass door 2: change queries or keys, (batch, heads, length, head_dim)."""
        return x

    def turns(
        self, positions: Tensor, num_heads: int, head_dim: int, dtype: torch.dtype
    ) -> Tensor | None:
        """Make what turns query and key, for ``rotate_pairs``, once for all layers.

        Args: as for ``rotate``; the sizes and the dtype of query and key.
        Returns: Complex numbers for the heads of query and key side by side, to fit
            (batch, 2 · num_heads, length, head_dim); or None, as here: then each
            layer calls ``rotate``, for the query and for the key.
        """
        return None

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor | None:
        """Pass door 3: what to add to scores, (batch, heads, query, key), or None."""
        return None


def beside(x: Tensor, positions: Tensor) -> Tensor:
    """Move positions to where ``x`` is, as float64 where it is, for a code as fine.

    Args: ``x``, any tensor, and the ``positions`` of its tokens.
    Returns: The positions, on the device of ``x``.
    """
    positions = positions.to(x.device)
    return positions.to(x.dtype) if x.dtype == torch.float64 else positions
