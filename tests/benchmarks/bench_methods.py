"""Speed and memory beside other libraries: one process, one thread, CPU time.

Each group prints ours and its peers; ``test_`` functions hold the ratios we promise.
"""

import subprocess
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import causal_forms
import pytest
import torch

from coursekit.places import Places
from coursekit.position import METHODS
from coursekit.relative import t5_bias
from coursekit.rope import (
    adjacent_from_halves,
    apply_rope,
    rotate_pairs,
    rotations,
)
from coursekit.sinusoidal import position_angles, sinusoidal_encoding
from coursekit.transformer import TinyTransformer

with warnings.catch_warnings():  # those of other libraries are not ours to mend
    warnings.simplefilter("ignore")
    from rotary_embedding_torch import RotaryEmbedding
    from torchtune.modules import RotaryPositionalEmbeddings
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, T5Config
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.llama import modeling_llama
    from transformers.models.m2m_100 import modeling_m2m_100
    from transformers.models.t5.modeling_t5 import T5Attention
    from x_transformers import x_transformers

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("default")
REPEATS = 7
PRECISIONS = [torch.float32, torch.bfloat16]


def bench(group):
    return pytest.mark.benchmark(group=group, timer=time.thread_time, warmup=True)


def seconds(forms, repeats=REPEATS):
    """Take the least CPU time of each form; they alternate, so a busy spell is fair."""
    times = {name: [] for name in forms}
    for _ in range(repeats + 1):
        for name, form in forms.items():
            start = time.thread_time()
            form()
            times[name].append(time.thread_time() - start)
    return {name: min(taken[1:]) for name, taken in times.items()}  # 0 warms up


def ratio(slow, fast, repeats=REPEATS):
    """Say how many times as long ``slow`` takes as ``fast``."""
    taken = seconds({"slow": slow, "fast": fast}, repeats)
    return taken["slow"] / taken["fast"]


def lead(forms, ours="ours", repeats=REPEATS):
    """Say how many times as long the fastest peer takes as ours."""
    own = {name for name in forms if name.startswith("ours")}
    kept = {name: form for name, form in forms.items() if name not in own - {ours}}
    taken = seconds(kept, repeats)
    peers = {name: spent for name, spent in taken.items() if name != ours}
    fastest = min(peers, key=peers.get)
    found = peers[fastest] / taken[ours]
    print(f"ours {taken[ours] * 1e3:.2f} ms, {fastest} {peers[fastest] * 1e3:.2f} ms")
    print(f"ratio {found:.2f}")
    return found


# RoPE on query and key, (1, 8, 2048, 64)

ROPE = ["ours", "ours from angles"]
ROPE += ["transformers", "rotary-embedding-torch", "x-transformers", "torchtune"]
HEADS, LENGTH, HEAD_DIM = 8, 2048, 64


def rope_pair(dtype, swapped):
    generator = torch.Generator().manual_seed(0)
    pair = torch.randn(2, 1, HEADS, LENGTH, HEAD_DIM, generator=generator).to(dtype)
    return (pair.transpose(2, 3).contiguous() if swapped else pair).unbind()


def rope_turner(name, query):
    """Return what turns one tensor; tables are made here, where the peer keeps them."""
    positions = torch.arange(LENGTH)
    angles = position_angles(positions, HEAD_DIM)
    if name == "ours":
        turns = rotations(angles, query.dtype)
        return lambda x: rotate_pairs(x, turns)
    if name == "ours from angles":
        return lambda x: apply_rope(x, angles)
    if name == "rotary-embedding-torch":
        module = RotaryEmbedding(HEAD_DIM).requires_grad_(False)
        return module.rotate_queries_or_keys  # caches its angles, not cos and sin
    if name == "x-transformers":
        angles, scale = x_transformers.RotaryEmbedding(HEAD_DIM).forward(positions)
        return lambda x: x_transformers.apply_rotary_pos_emb(x, angles, scale)
    return RotaryPositionalEmbeddings(HEAD_DIM, max_seq_len=LENGTH)


def rope_forms(dtype, backward):
    return {name: rope_form(name, dtype, backward) for name in ROPE}


def rope_form(name, dtype, backward):
    pair = rope_pair(dtype, swapped=name == "torchtune")  # (batch, length, heads, …)
    pair = [x.detach().requires_grad_(backward) for x in pair]
    if name == "transformers":
        config = LlamaConfig(hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS)
        module = modeling_llama.LlamaRotaryEmbedding(config)
        tables = module(pair[0].detach(), torch.arange(LENGTH)[None])

        def forward():
            return modeling_llama.apply_rotary_pos_emb(*pair, *tables)
    else:
        turn = rope_turner(name, pair[0])

        def forward():
            return turn(pair[0]), turn(pair[1])

    signal = [torch.ones_like(x) for x in pair]
    if backward:
        return lambda: torch.autograd.grad(forward(), pair, signal)
    return torch.no_grad()(forward)


def rope_group(backward, dtype):
    return f"rope {'with backward' if backward else 'forward'} {str(dtype)[6:]}"


def rope_rows():
    for dtype in PRECISIONS:
        for backward in (False, True):
            mark = bench(rope_group(backward, dtype))
            for name in ROPE:
                yield pytest.param(name, dtype, backward, marks=mark)


@pytest.mark.parametrize(("name", "dtype", "backward"), [*rope_rows()])
def test_rope_speed(benchmark, name, dtype, backward):
    benchmark(rope_form(name, dtype, backward))


@pytest.mark.parametrize("name", ROPE[1:])
def test_rope_peers_do_the_same_work(name):
    swapped = name == "torchtune"
    found = rope_form(name, torch.float32, backward=False)()
    turn = rope_turner("ours", found[0])
    halves = adjacent_from_halves(HEAD_DIM)  # how transformers pairs features
    index = halves if name == "transformers" else torch.arange(HEAD_DIM)
    for raw, turned in zip(rope_pair(torch.float32, swapped), found, strict=True):
        raw, turned = (x.transpose(1, 2) if swapped else x for x in (raw, turned))
        assert (turn(raw[..., index]) - turned[..., index]).abs().max() < 2e-3


@pytest.mark.parametrize(
    ("dtype", "backward", "least"),
    [
        (torch.float32, False, 3.0),
        (torch.float32, True, 1.0),
        (torch.bfloat16, False, 1.0),
        (torch.bfloat16, True, 1.0),
    ],
)
def test_rope_leads(dtype, backward, least):
    assert lead(rope_forms(dtype, backward)) >= least


# T5's bias, 8 × 2048 × 2048

T5_FORMS = ["ours", "transformers", "x-transformers"]


def t5_form(name):
    torch.manual_seed(0)
    config = T5Config(num_heads=HEADS, d_kv=HEAD_DIM, d_model=HEADS * HEAD_DIM)
    module = T5Attention(config, has_relative_attention_bias=True)
    table = module.relative_attention_bias.weight
    positions = torch.arange(LENGTH)
    if name == "ours":
        return torch.no_grad()(lambda: t5_bias(table, positions, positions))
    if name == "x-transformers":
        module = x_transformers.RelativePositionBias(scale=1, heads=HEADS)
        module.relative_attention_bias.weight = table
        return torch.no_grad()(lambda: module(LENGTH, LENGTH))
    return torch.no_grad()(lambda: module.compute_bias(LENGTH, LENGTH)[0])


@bench("t5 bias")
@pytest.mark.parametrize("name", T5_FORMS)
def test_t5_speed(benchmark, name):
    benchmark.pedantic(t5_form(name), rounds=REPEATS, warmup_rounds=1)


@pytest.mark.parametrize("name", T5_FORMS[1:])
def test_t5_peers_do_the_same_work(name):
    assert torch.equal(t5_form("ours")(), t5_form(name)())


def test_t5_leads():
    assert lead({name: t5_form(name) for name in T5_FORMS}) >= 2.0


# Causal ALiBi at 4,096


def causal_form(name):
    arguments = causal_forms.inputs()
    return torch.no_grad()(lambda: causal_forms.FORMS[name](*arguments))


@cache
def peak_kib(name):
    """Measure in a process of its own, so that nothing else has raised the peak."""
    command = [sys.executable, causal_forms.__file__, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


needs_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read as Linux has it"
)


@bench("causal alibi")
@pytest.mark.parametrize("name", causal_forms.FORMS)
def test_causal_speed(benchmark, name):
    if sys.platform == "linux":
        benchmark.extra_info["peak MiB"] = round(peak_kib(name) / 1024, 1)
    benchmark.pedantic(causal_form(name), rounds=5, warmup_rounds=1)


def test_folded_alibi_equals_bias_and_softmax():
    gap = causal_form("folded")() - causal_form("bias_and_softmax")()
    assert gap.abs().max() < 1e-4


def test_folded_alibi_leads_bias_and_softmax():
    forms = causal_form("bias_and_softmax"), causal_form("folded")
    assert ratio(*forms, repeats=5) >= 8.0


def test_folded_alibi_costs_little_more_than_no_bias():
    assert ratio(causal_form("folded"), causal_form("no_bias")) <= 1.3


@needs_linux
def test_folded_alibi_needs_a_fiftieth_of_the_memory():
    assert peak_kib("bias_and_softmax") / peak_kib("folded") >= 50.0


# Cached decoding, 512 tokens, 2 layers

TOKENS, VOCABULARY = 512, 64


def ids():
    generator = torch.Generator().manual_seed(0)
    return torch.randint(VOCABULARY, (1, TOKENS), generator=generator)


def our_model(method, dtype=torch.float32):
    torch.manual_seed(0)
    position = METHODS[method](d_model=64, num_heads=4, max_length=TOKENS)
    return TinyTransformer(VOCABULARY, 64, 4, 2, position).to(dtype)


def our_loop(method, dtype=torch.float32):
    model, row = our_model(method, dtype), ids()

    @torch.no_grad()
    def decode():
        kept, found = None, []
        for index in range(TOKENS):
            logits, kept = model.decode(row[:, index : index + 1], kept)
            found.append(logits)
        return torch.cat(found, 1)

    return decode


def llama_loop():
    """Decode with a Llama of as many weights: 3 × 170 is about 2 × 256."""
    sizes = {"hidden_size": 64, "intermediate_size": 170, "num_hidden_layers": 2}
    config = LlamaConfig(vocab_size=VOCABULARY, num_attention_heads=4, **sizes)
    model, row = LlamaForCausalLM(config).eval(), ids()

    @torch.no_grad()
    def decode():
        kept, found = DynamicCache(config=config), []
        for index in range(TOKENS):
            new = row[:, index : index + 1]
            found.append(model(new, cache=kept, use_cache=True).logits)
        assert kept.get_seq_length() == TOKENS
        return torch.cat(found, 1)

    return decode


@bench("decoding 512 tokens")
@pytest.mark.parametrize("name", ["transformers", *METHODS])
def test_decoding_speed(benchmark, name):
    loop = llama_loop() if name == "transformers" else our_loop(name)
    benchmark.extra_info["tokens"] = TOKENS
    benchmark.pedantic(loop, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)]
)
@pytest.mark.parametrize("method", METHODS)
def test_decoding_equals_the_full_forward(method, dtype, tolerance):
    full = our_model(method, dtype)(ids(), Places(torch.arange(TOKENS)))
    assert (our_loop(method, dtype)() - full).abs().max() <= tolerance


def test_decoding_leads_with_the_position_method_of_llama():
    assert ratio(llama_loop(), our_loop("rope")) >= 1.5


@pytest.mark.parametrize("method", METHODS)
def test_decoding_is_never_slower(method):
    assert ratio(llama_loop(), our_loop(method), repeats=5) >= 1.0


# The sinusoid table, 4096 × 512

ROWS, WIDTH = 4096, 512
SINUSOIDS = ["ours", "transformers gptj", "transformers m2m", "x-transformers"]


def sinusoid_form(name):
    if name == "transformers gptj":
        return lambda: create_sinusoidal_positions(ROWS, WIDTH)
    if name == "transformers m2m":
        table = modeling_m2m_100.M2M100SinusoidalPositionalEmbedding.get_embedding
        return lambda: table(ROWS, WIDTH)
    if name == "x-transformers":
        module = x_transformers.ScaledSinusoidalEmbedding(WIDTH).requires_grad_(False)
        module.scale.fill_(1.0)
        inputs = torch.empty(1, ROWS, 0)
        return lambda: module(inputs)
    return lambda: sinusoidal_encoding(torch.arange(ROWS), WIDTH)


def sinusoid_error(name):
    """Compare with float64: sines first or in turn, M2M's frequencies its own."""
    steps = WIDTH // 2 - (name == "transformers m2m")
    frequencies = 10_000.0 ** (-torch.arange(WIDTH // 2).double() / steps)
    angles = torch.arange(ROWS).double()[:, None] * frequencies
    parts = angles.sin(), angles.cos()
    want = torch.stack(parts, -1).flatten(1) if name == "ours" else torch.cat(parts, 1)
    return (sinusoid_form(name)().double() - want).abs().amax(-1)


@bench("sinusoid table")
@pytest.mark.parametrize("name", SINUSOIDS)
def test_sinusoid_speed(benchmark, name):
    benchmark.extra_info["error at the last position"] = sinusoid_error(name)[-1].item()
    benchmark(sinusoid_form(name))


def test_the_sinusoid_table_is_true():
    assert sinusoid_error("ours").max() <= 1e-6


def test_the_sinusoid_table_takes_at_most_three_times_the_fastest_peer():
    assert lead({name: sinusoid_form(name) for name in SINUSOIDS}) >= 1 / 3
