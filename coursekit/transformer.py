"""A tiny decoder that takes any position method by its door."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from coursekit import _require
from coursekit.attention import AttentionSteps, merge_heads, split_heads
from coursekit.places import Cache, Places, append, next_places, visible
from coursekit.position import NoPosition
from coursekit.rope import rotate_pairs
from coursekit.ways import FAST, Way, explicit


class TinyTransformer(nn.Module):
    """Predict the next token; the position method is the one thing that varies.

    Args:
        vocab_size: Number of different tokens.
        d_model: Features of each token, a multiple of ``num_heads``.
        num_heads: Heads of each layer.
        num_layers: Layers, pre-norm; all of them share ``position``.
        position: From ``METHODS``; a method with parameters trains with the model.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        position: NoPosition,
    ) -> None:
        """Build and initialise; raise ValueError for sizes that do not fit."""
        super().__init__()
        _require.at_least("vocab_size", vocab_size)
        _require.at_least("num_layers", num_layers)
        _require.multiple("d_model", d_model, "num_heads", num_heads)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            _Layer(d_model, num_heads) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)
        self.position = position
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew; embeddings from N(0, 1 / d_model)."""
        for module in self.modules():
            if module is not self and hasattr(module, "reset_parameters"):
                module.reset_parameters()
        nn.init.normal_(self.embedding.weight, std=self.embedding.embedding_dim**-0.5)

    def forward(self, ids: Tensor, places: Places | None = None) -> Tensor:
        """Score every next token.

        Args:
            ids: (batch, length) int64.
            places: 0, 1, 2, … in one document unless given.

        Returns:
            Logits over the vocabulary, (batch, length, vocab_size).

        Raises:
            ValueError: If ``ids`` are not (batch, length).
        """
        return self._run(ids, places, None, FAST)[0]

    def steps(self, ids: Tensor, places: Places | None = None) -> list[AttentionSteps]:
        """Return the named values of each layer's attention, first layer first."""
        found: list[AttentionSteps] = []
        self._run(ids, places, None, explicit(found))
        return found

    def decode(
        self, ids: Tensor, cache: Cache | None = None, places: Places | None = None
    ) -> tuple[Tensor, Cache]:
        """Score the next tokens with the keys and values of those before them.

        Args:
            ids: The new tokens, (batch, length) int64: a prompt, then one at a time.
            cache: From the call before; it is not changed.
            places: Of the new tokens; they go on from the cache unless given.

        Returns:
            Logits of the new tokens, equal to those of one long ``forward``, and the
            cache for the next call.

        Raises:
            ValueError: If ``ids`` are not (batch, length).
        """
        return self._run(ids, places, cache, FAST)

    @torch.no_grad()
    def generate(
        self, ids: Tensor, num_tokens: int, places: Places | None = None
    ) -> Tensor:
        """Continue each row by its most likely token, (batch, num_tokens) in all."""
        _require.at_least("num_tokens", num_tokens)
        logits, cache = self.decode(ids, places=places)
        found = [logits[:, -1:].argmax(-1)]
        for _ in range(num_tokens - 1):
            logits, cache = self.decode(found[-1], cache)
            found.append(logits.argmax(-1))
        return torch.cat(found, -1)

    def _run(
        self, ids: Tensor, places: Places | None, cache: Cache | None, way: Way
    ) -> tuple[Tensor, Cache]:
        """Walk from ids to logits, with ``way`` for the attention."""
        _require.rows("ids", ids)
        plain = places is None and (cache is None or ids.shape[-1] == 1)
        places = places or next_places(ids.shape[-1], cache, ids.device)
        seen = Cache([], [], append(cache, places))
        both = places.positions.to(ids.device), seen.places.positions
        plain = plain and places.documents is None
        mask = None if plain else visible(places, seen.places)
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        x = self.position.embed(x, both[0])
        num_heads = self.layers[0].num_heads
        head_dim = x.shape[-1] // num_heads
        turns = self.position.turns(both[0], num_heads, head_dim, x.dtype)
        for index, layer in enumerate(self.layers):
            query, key, value = _turned(self.position, layer.heads(x), turns, both[0])
            if cache is not None:
                key = torch.cat((cache.keys[index], key), dim=-2)
                value = torch.cat((cache.values[index], value), dim=-2)
            seen.keys.append(key)
            seen.values.append(value)
            if index == 0 or not self.position.one_bias:
                bias = self.position.bias(query, *both)
                extras = way.join(bias, mask, both)
            x = layer.finish(x, way.attend(query, key, value, *extras))
        return self.head(self.norm(x)), seen


class _Layer(nn.Module):
    """Pre-norm attention and a GELU network four times as wide."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.before_attention = nn.LayerNorm(d_model)
        self.projections = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)
        self.before_network = nn.LayerNorm(d_model)
        self.widen = nn.Linear(d_model, 4 * d_model)
        self.narrow = nn.Linear(4 * d_model, d_model)

    def heads(self, x: Tensor) -> Tensor:
        """Return the heads of query, key and value, side by side."""
        projected = self.projections(self.before_attention(x))
        return split_heads(projected, 3 * self.num_heads)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add what was attended to, then the network's answer."""
        x = x + self.output(merge_heads(attended))
        return x + self.narrow(gelu(self.widen(self.before_network(x))))


def _turned(position, heads, turns, positions) -> tuple[Tensor, Tensor, Tensor]:
    """Pass door 2 with query and key, by the turns of the call where there are any."""
    third = heads.shape[1] // 3
    if turns is None:
        query, key, value = heads.split(third, dim=1)
        return position.rotate(query, positions), position.rotate(key, positions), value
    turning, value = heads.split((2 * third, third), dim=1)
    return *rotate_pairs(turning, turns).split(third, dim=1), value
