"""The methods of door 3: what they add, what they learn, what they refuse."""

import math

import pytest
import torch
from torch.testing import assert_close

from coursekit.alibi import alibi_bias
from coursekit.attention import attention, causal_mask
from coursekit.position import METHODS as ALL
from coursekit.position_bias import T5, Alibi, Kerple, Shaw, Windowed
from coursekit.transformer import TinyTransformer

ROW = torch.arange(5)


def draw(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def filled(method, seed=3):
    """Give the parameters values that no start would give."""
    with torch.no_grad():
        for index, parameter in enumerate(method.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=seed + index))
    return method


METHODS = {
    "shaw": lambda: filled(Shaw(4, clip=2)),
    "t5": lambda: filled(T5(2, 8, max_distance=8, bidirectional=False)),
    "alibi": lambda: Alibi(2),
    "kerple": lambda: filled(Kerple(2)),
}


# Properties


@pytest.mark.parametrize("name", METHODS)
def test_a_bias_does_not_see_a_common_shift(name):
    method, query = METHODS[name](), draw(1, 2, 5, 4)
    near, far = method.bias(query, ROW, ROW), method.bias(query, ROW + 900, ROW + 900)
    assert_close(near, far)


@pytest.mark.parametrize("name", METHODS)
def test_another_order_of_keys_gives_the_same_columns_in_that_order(name):
    method, query = METHODS[name](), draw(1, 2, 5, 4)
    order = torch.tensor([3, 0, 4, 1, 2])
    want = method.bias(query, ROW, ROW)[..., order]
    assert_close(method.bias(query, ROW, ROW[order]), want)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_bias_has_the_dtype_of_the_query(name, dtype):
    method = METHODS[name]()
    assert method.bias(draw(1, 2, 5, 4, dtype=dtype), ROW, ROW).dtype == dtype


@pytest.mark.parametrize("name", ["shaw", "t5", "kerple"])
def test_what_is_learned_gets_gradients(name):
    method = METHODS[name]()
    method.bias(draw(1, 2, 5, 4), ROW, ROW).square().sum().backward()
    for parameter in method.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().sum() > 0


def test_kerple_stays_a_penalty_wherever_training_takes_it():
    kerple = Kerple(2)
    with torch.no_grad():
        kerple.logs.copy_(torch.tensor([[-9.0, 4.0], [6.0, -7.0]]))
    bias = kerple.bias(draw(1, 2, 5, 4), ROW, ROW)
    assert (bias <= 0).all()
    assert torch.equal(bias.diagonal(dim1=-2, dim2=-1), torch.zeros(2, 5))


def model_of(name, position=None):
    torch.manual_seed(0)
    sizes = {"d_model": 8, "num_heads": 2}
    model = TinyTransformer(
        7, **sizes, num_layers=1, position=ALL["none"](**sizes, max_length=32)
    )
    torch.manual_seed(1)
    method = filled(ALL[name](**sizes, max_length=32))
    model.position = method if position is None else position(method)
    return model


@pytest.mark.parametrize("name", ALL)
def test_a_window_as_wide_as_the_text_changes_nothing(name):
    ids = torch.randint(7, (2, 9), generator=torch.Generator().manual_seed(0))
    whole = model_of(name)(ids)
    assert_close(model_of(name, lambda m: Windowed(m, 9))(ids), whole)
    narrow = model_of(name, lambda m: Windowed(m, 8))(ids)
    assert_close(narrow[:, :8], whole[:, :8])
    assert not torch.allclose(narrow[:, 8], whole[:, 8], atol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_a_token_outside_the_window_is_not_seen(name):
    ids = torch.randint(7, (1, 9), generator=torch.Generator().manual_seed(0))
    other = ids.clone()
    other[0, 4] = (other[0, 4] + 1) % 7
    model = model_of(name, lambda m: Windowed(m, 3))
    gaps = (model(ids) - model(other)).abs().amax(-1)[0]
    assert (gaps[[0, 1, 2, 3, 7, 8]] == 0).all()
    assert (gaps[[4, 5, 6]] > 1e-6).all()


# Oracles


def test_kerple_is_what_loops_fill_in():
    kerple = filled(Kerple(2))
    scale, rate = kerple.logs.double().exp().tolist()
    want = [
        [[-s * math.log(1 + r * abs(k - q)) for k in range(5)] for q in range(5)]
        for s, r in zip(scale, rate, strict=True)
    ]
    found = kerple.bias(draw(1, 2, 5, 4, dtype=torch.float64), ROW, ROW)
    assert_close(
        found.double(), torch.tensor(want, dtype=torch.float64), atol=1e-5, rtol=1e-5
    )


def test_kerple_starts_from_scale_one_and_rate_one():
    bias = Kerple(3).bias(draw(1, 3, 5, 4), ROW, ROW)
    want = -torch.log1p((ROW[:, None] - ROW).abs().float())
    assert_close(bias, want.expand(3, -1, -1))


def test_shaw_is_what_loops_fill_in():
    shaw, query = filled(Shaw(4, clip=2)), draw(1, 2, 5, 4)
    found, table = shaw.bias(query, ROW, ROW).tolist(), shaw.table.tolist()
    for head in range(2):
        for i, asked in enumerate(query[0, head].tolist()):
            for j in range(5):
                row = table[max(-2, min(2, j - i)) + 2]
                want = sum(q * r for q, r in zip(asked, row, strict=True)) / 2
                assert abs(found[0][head][i][j] - want) < 1e-5


def test_t5_looks_up_one_number_for_each_head_and_distance():
    t5 = filled(T5(2, 8, max_distance=8, bidirectional=False))
    found = t5.bias(draw(1, 2, 5, 4), ROW, ROW)
    for i in range(5):
        for j in range(5):
            bucket = max(i - j, 0)  # the first four distances have their own
            if bucket < 4:
                assert torch.equal(found[:, i, j], t5.table[bucket])


def test_alibi_is_the_bias_of_its_module():
    assert torch.equal(
        Alibi(2).bias(draw(1, 2, 5, 4), ROW, ROW), alibi_bias(2, ROW, ROW)
    )


def test_a_window_is_attention_over_fewer_keys():
    query, key, value = (draw(1, 2, 7, 4, seed=seed) for seed in range(3))
    row = torch.arange(7)
    bias = Windowed(Alibi(2), 3).bias(query, row, row)
    found = attention(query, key, value, bias=bias, mask=causal_mask(row, row)).output
    for i in range(7):
        near = slice(max(0, i - 2), i + 1)
        one = attention(
            *(query[:, :, i : i + 1], key[:, :, near], value[:, :, near]),
            bias=alibi_bias(2, row[i : i + 1], row[near]),
        )
        assert_close(found[:, :, i : i + 1], one.output)


# Boundaries


@pytest.mark.parametrize("name", METHODS)
def test_one_query_meets_a_long_cache(name):
    method, query = METHODS[name](), draw(1, 2, 5, 4)
    whole = method.bias(query, ROW, ROW)
    last = method.bias(query[..., -1:, :], ROW[-1:], ROW)
    assert_close(last, whole[..., -1:, :])


@pytest.mark.parametrize("name", METHODS)
def test_a_row_of_positions_for_each_sequence_is_its_own(name):
    method, query = METHODS[name](), draw(2, 2, 5, 4)
    rows = torch.stack((ROW, 2 * ROW))
    found = method.bias(query, rows, rows)
    for index, row in enumerate(rows):
        alone = method.bias(query[index : index + 1], row, row)
        assert_close(found[index], alone.reshape(found[index].shape))


# Messages


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda size: Kerple(size), "num_heads"),
        (lambda size: Alibi(size), "num_heads"),
        (lambda size: Shaw(size), "head_dim"),
        (lambda size: Shaw(4, clip=size), "clip"),
        (lambda size: T5(size), "num_heads"),
        (lambda size: Windowed(Alibi(2), size), "width"),
    ],
)
def test_an_empty_size_is_refused_and_one_is_enough(make, name):
    make(1)
    with pytest.raises(ValueError, match=f"{name} is 0, .* at least 1"):
        make(0)
