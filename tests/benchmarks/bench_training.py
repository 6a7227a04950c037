"""Training speed, forward, backward and AdamW, beside a floor and two libraries."""

import math

import pytest
import torch
from bench_methods import (
    LlamaConfig,
    LlamaForCausalLM,
    bench,
    lead,
    ratio,
    x_transformers,
)
from torch import nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from coursekit.alibi import alibi_bias
from coursekit.position import METHODS
from coursekit.relative import t5_bias
from coursekit.sinusoidal import position_angles, sinusoidal_encoding
from coursekit.transformer import TinyTransformer

pytestmark = pytest.mark.filterwarnings("default")
VOCABULARY = 79
SMALL = {"width": 64, "layers": 2, "length": 64, "batch": 32}
LARGE = {"width": 128, "layers": 4, "length": 256, "batch": 8}
HEADS = 4
POINTS = [pytest.param(SMALL, id="small"), pytest.param(LARGE, id="large")]


class Floor(nn.Module):
    """The least that a pre-norm decoder must do, its position signal made by hand."""

    def __init__(self, method, width, layers, length):
        super().__init__()
        self.method, self.width = method, width
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY)
        row, size = torch.arange(length), width // HEADS
        self.table = nn.Parameter(torch.zeros(32, HEADS)) if method == "t5" else None
        self.rows = nn.Parameter(torch.zeros(length, width))
        self.code = sinusoidal_encoding(row, width)
        angles = position_angles(row, size)
        self.turns = torch.complex(angles.cos(), angles.sin()).to(torch.complex64)
        self.row = row
        future = torch.full((length, length), -math.inf).triu(1)
        self.future, self.alibi = future, (alibi_bias(HEADS, row, row) + future)[None]

    def forward(self, ids):
        x = self.embedding(ids) * self.width**0.5
        if self.method == "sinusoidal":
            x = x + self.code
        if self.method == "learned":
            x = x + self.rows
        bias = {"alibi": self.alibi}.get(self.method)
        if self.method == "t5":
            bias = t5_bias(self.table, self.row, self.row, bidirectional=False)
            bias = bias + self.future
        turns = self.turns if self.method == "rope" else None
        for block in self.blocks:
            x = block(x, turns, bias)
        return self.head(self.norm(x))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, turns, bias):
        batch, length, width = x.shape
        inner = self.inner(self.first(x)).view(batch, length, 3, HEADS, -1)
        query, key, value = inner.permute(2, 0, 3, 1, 4)
        if turns is not None:
            both = torch.stack((query, key)).unflatten(-1, (-1, 2))
            both = torch.view_as_real(torch.view_as_complex(both) * turns)
            query, key = both.flatten(-2)
        found = scaled_dot_product_attention(
            query, key, value, bias, is_causal=bias is None
        )
        x = x + self.outer(found.transpose(1, 2).flatten(-2))
        return x + self.down(gelu(self.up(self.second(x))))


def ours(method, point):
    position = METHODS[method](
        d_model=point["width"], num_heads=HEADS, max_length=point["length"]
    )
    return TinyTransformer(VOCABULARY, point["width"], HEADS, point["layers"], position)


def floor(method, point):
    return Floor(method, point["width"], point["layers"], point["length"])


def llama(point):
    """As many weights as ours: three matrices of 8/3 of the width for two of 4."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=point["width"],
        intermediate_size=8 * point["width"] // 3,
        num_hidden_layers=point["layers"],
        num_attention_heads=HEADS,
        use_cache=False,
    )
    model = LlamaForCausalLM(config)
    return lambda ids: model(ids).logits, model


def x_transformer(method, point):
    options = {"alibi": {"alibi_pos_bias": True}, "t5": {"rel_pos_bias": True}}[method]
    model = x_transformers.TransformerWrapper(
        num_tokens=VOCABULARY,
        max_seq_len=point["length"],
        use_abs_pos_emb=False,
        attn_layers=x_transformers.Decoder(
            dim=point["width"],
            depth=point["layers"],
            heads=HEADS,
            attn_dim_head=point["width"] // HEADS,
            attn_flash=method == "alibi",  # it has no flash attention with T5's bias
            **options,
        ),
    )
    return model, model


def step_of(forward, model, point):
    """Return one step of training on the same random tokens each time."""
    shape = point["batch"], point["length"] + 1
    ids = torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step():
        logits = forward(ids[:, :-1])
        loss = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def steps_of(make, *arguments):
    torch.manual_seed(0)
    made = make(*arguments)
    forward, model = made if isinstance(made, tuple) else (made, made)
    return step_of(forward, model, arguments[-1])


METHODS_WITH_FLOOR = ["none", "sinusoidal", "learned", "rope", "alibi", "t5"]


@pytest.mark.parametrize("method", METHODS_WITH_FLOOR)
@pytest.mark.parametrize("point", POINTS)
def test_the_floor_is_the_same_model(method, point):
    model, plain = ours(method, point), floor(method, point)
    torch.manual_seed(1)
    with torch.no_grad():
        shared = [p for n, p in model.named_parameters() if "position" not in n]
        for own in shared:
            own.copy_(torch.randn_like(own) * 0.1)
        if plain.table is not None:
            plain.table.normal_()
            model.position.table.copy_(plain.table)
        if method == "learned":
            plain.rows.normal_()
            model.position.rows.table.copy_(plain.rows)
        names = {"before_attention": "first", "before_network": "second"}
        names |= {"projections": "inner", "output": "outer", "layers": "blocks"}
        names |= {"widen": "up", "narrow": "down"}
        state = model.state_dict()
        own = {k: v for k, v in state.items() if not k.startswith("position.")}
        for name in list(own):
            value = own.pop(name)
            own[".".join(names.get(part, part) for part in name.split("."))] = value
        plain.load_state_dict(own, strict=False)
        ids = torch.randint(VOCABULARY, (2, point["length"]))
        assert (model(ids) - plain(ids)).abs().max() < 1e-4


@bench("training step")
@pytest.mark.parametrize("method", ["none", "sinusoidal", "learned", "rope"])
@pytest.mark.parametrize("kind", [ours, floor])
@pytest.mark.parametrize("point", POINTS)
def test_training_speed(benchmark, kind, method, point):
    benchmark.extra_info["tokens"] = point["batch"] * point["length"]
    benchmark.pedantic(steps_of(kind, method, point), rounds=10, warmup_rounds=2)


@pytest.mark.parametrize("method", METHODS_WITH_FLOOR)
@pytest.mark.parametrize("point", POINTS)
def test_training_is_near_the_floor(method, point):
    forms = steps_of(ours, method, point), steps_of(floor, method, point)
    assert ratio(*forms, repeats=15) <= 1.05


@pytest.mark.parametrize("point", POINTS)
def test_training_is_not_slower_than_llama(point):
    forms = {"ours": steps_of(ours, "rope", point), "Llama": steps_of(llama, point)}
    assert lead(forms) >= 1.0


@pytest.mark.parametrize("method", ["alibi", "t5"])
@pytest.mark.parametrize("point", POINTS)
def test_training_is_not_slower_than_x_transformers(method, point):
    forms = {
        "ours": steps_of(ours, method, point),
        "x-transformers": steps_of(x_transformer, method, point),
    }
    assert lead(forms) >= 1.0
