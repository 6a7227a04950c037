"""The methods of door 3, which add a bias to the scores: Shaw, T5, ALiBi, KERPLE."""

import torch
from torch import Tensor, nn

from coursekit import _require
from coursekit.alibi import alibi_bias, kerple_bias
from coursekit.doors import NoPosition, beside
from coursekit.relative import relative_positions, relative_scores, t5_bias


class Shaw(NoPosition):
    """Door 3: score each query against a trained row for each clipped offset.

    Offsets farther than ``clip`` share the last row of their side.

    Source: Shaw et al. 2018, section 3.2, arXiv:1803.02155.
    """

    def __init__(self, head_dim: int, clip: int = 16) -> None:
        """Make the table; raise ValueError for sizes below 1."""
        super().__init__()
        _require.at_least("head_dim", head_dim)
        _require.at_least("clip", clip)
        self.table = nn.Parameter(torch.empty(2 * clip + 1, head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows small, so that training starts near no position at all."""
        nn.init.normal_(self.table, std=0.02)

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Return query times row, scaled like the scores."""
        offsets = relative_positions(query_positions, key_positions)
        return relative_scores(query, self.table, offsets)


class T5(NoPosition):
    """Door 3: add one trained number for each head and bucket of offsets.

    ``options`` go to ``t5_bucket``: max_distance, and bidirectional=False for a
    decoder, which needs no buckets for the future.

    Source: Raffel et al. 2020, section 2.1, arXiv:1910.10683.
    """

    one_bias = True

    def __init__(self, num_heads: int, num_buckets: int = 32, **options) -> None:
        """Make the table; raise ValueError for sizes below 1."""
        super().__init__()
        _require.at_least("num_heads", num_heads)
        _require.at_least("num_buckets", num_buckets)
        self.table = nn.Parameter(torch.empty(num_buckets, num_heads))
        self.options = options
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start from no bias at all."""
        nn.init.zeros_(self.table)

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Return the bias of every pair, in the dtype of ``query``."""
        places = query_positions, key_positions
        return t5_bias(self.table, *places, **self.options).to(query.dtype)


class Alibi(NoPosition):
    """Door 3: subtract a penalty that grows with distance, at each head's own rate.

    Source: Press et al. 2022, section 3, arXiv:2108.12409.
    """

    one_bias = True

    def __init__(self, num_heads: int) -> None:
        """Keep the number of heads; raise ValueError if it is below 1."""
        super().__init__()
        _require.at_least("num_heads", num_heads)
        self.num_heads = num_heads

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Return minus slope times distance, in the dtype of ``query``."""
        places = beside(query, query_positions), beside(query, key_positions)
        return alibi_bias(self.num_heads, *places).to(query.dtype)


class Kerple(NoPosition):
    """Door 3: a logarithmic penalty whose two numbers each head learns.

    Source: Chi et al. 2022, section 4, the logarithmic variant, arXiv:2205.09921.
    """

    one_bias = True

    def __init__(self, num_heads: int) -> None:
        """Make the parameters; raise ValueError if there is no head."""
        super().__init__()
        _require.at_least("num_heads", num_heads)
        self.logs = nn.Parameter(torch.empty(2, num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start all heads at scale 1 and rate 1, held as logarithms, above 0."""
        nn.init.zeros_(self.logs)

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Return minus scale · log(1 + rate · distance), in the dtype of ``query``."""
        scale, rate = self.logs.exp()
        return kerple_bias(scale, rate, query_positions, key_positions).to(query.dtype)


class Windowed(NoPosition):
    """Let any method see the last ``width`` tokens alone, itself included.

    For a trained model: what it then reads well, it lost by looking too far.
    """

    def __init__(self, position: NoPosition, width: int) -> None:
        """Wrap a method; raise ValueError if the window is empty."""
        super().__init__()
        _require.at_least("width", width)
        self.position, self.width = position, width

    @property
    def one_bias(self) -> bool:
        """Share the bias of all layers if the method does."""
        return self.position.one_bias

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Pass door 1 of the method."""
        return self.position.embed(x, positions)

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Pass door 2 of the method."""
        return self.position.rotate(x, positions)

    def turns(self, *call):
        """Make the turns of the method."""
        return self.position.turns(*call)

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Add -inf for all that lies ``width`` or more back to the method's bias."""
        offsets = relative_positions(query_positions, key_positions)
        far = torch.zeros_like(offsets, dtype=query.dtype)
        far = far.masked_fill(offsets <= -self.width, float("-inf"))
        bias = self.position.bias(query, query_positions, key_positions)
        return far if bias is None else bias + far
