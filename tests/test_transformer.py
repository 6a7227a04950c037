"""The decoder: one door changes it, decoding equals the full forward."""

import pytest
import torch
from torch import nn

from coursekit.places import Places
from coursekit.position import METHODS
from coursekit.transformer import TinyTransformer

SIZES = {"d_model": 32, "num_heads": 4}


def model_of(name, *, num_layers=2, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    position = METHODS[name](**SIZES, max_length=64)
    model = TinyTransformer(19, **SIZES, num_layers=num_layers, position=position)
    with torch.no_grad():  # tables that start at 0 would hide a lost signal
        for parameter in position.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model.to(dtype)


def ids_of(batch, length, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(19, (batch, length), generator=generator)


def decoded(model, ids, prompt, places=None):
    first = None if places is None else Places(*(p[..., :prompt] for p in places))
    logits, cache = model.decode(ids[:, :prompt], places=first)
    found = [logits]
    for index in range(prompt, ids.shape[1]):
        logits, cache = model.decode(ids[:, index : index + 1], cache)
        found.append(logits)
    return torch.cat(found, 1)


def gap(first, second):
    return (first - second).abs().max().item()


# property


@pytest.mark.parametrize("name", METHODS)
def test_cached_decoding_equals_the_full_forward(name):
    model, ids = model_of(name), ids_of(3, 12)
    assert gap(decoded(model, ids, 5), model(ids)) < 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_cached_decoding_in_single_precision_stays_close(name):
    model, ids = model_of(name, dtype=torch.float32), ids_of(3, 12)
    assert gap(decoded(model, ids, 1), model(ids)) < 1e-5


@pytest.mark.parametrize("name", METHODS)
def test_a_prompt_may_come_in_pieces(name):
    model, ids = model_of(name), ids_of(2, 9)
    first, cache = model.decode(ids[:, :4])
    second, _ = model.decode(ids[:, 4:], cache)
    assert gap(torch.cat((first, second), 1), model(ids)) < 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_left_padding_changes_no_real_token(name):
    model, ids = model_of(name), ids_of(2, 9)
    real = torch.ones(2, 9, dtype=torch.bool)
    real[1, :4] = False
    places = Places.from_mask(real)
    padded = model(ids, places)
    assert gap(padded[:1], model(ids[:1])) < 1e-12
    assert gap(padded[1:, 4:], model(ids[1:, 4:])) < 1e-12
    assert gap(decoded(model, ids, 6, places)[1:, 4:], padded[1:, 4:]) < 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_packed_documents_equal_documents_alone(name):
    model, ids = model_of(name), ids_of(1, 10)
    documents = torch.tensor([[0] * 6 + [1] * 4])
    positions = torch.tensor([[*range(6), *range(4)]])
    packed = model(ids, Places(positions, documents))
    alone = torch.cat((model(ids[:, :6]), model(ids[:, 6:])), 1)
    assert gap(packed, alone) < 1e-12


@pytest.mark.parametrize("name", [n for n in METHODS if n not in ("none",)])
def test_every_method_but_none_sees_the_order_of_the_past(name):
    model, ids = model_of(name, num_layers=1), ids_of(1, 8)
    swapped = ids[:, [3, 1, 2, 0, 4, 5, 6, 7]]
    assert gap(model(ids)[:, -1], model(swapped)[:, -1]) > 1e-4


def test_one_layer_without_positions_sees_a_bag_of_the_past():
    model, ids = model_of("none", num_layers=1), ids_of(1, 8)
    swapped = ids[:, [3, 1, 2, 0, 4, 5, 6, 7]]
    assert gap(model(ids)[:, -1], model(swapped)[:, -1]) < 1e-12


@pytest.mark.parametrize("name", ["none", "shaw", "t5", "rope", "alibi"])
def test_relative_methods_do_not_see_a_common_shift(name):
    model, ids = model_of(name), ids_of(2, 8)
    shifted = model(ids, Places(torch.arange(8) + 1_000))
    assert gap(shifted, model(ids)) < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_the_future_is_hidden(name):
    model, ids = model_of(name), ids_of(2, 8)
    changed = ids.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 19
    assert gap(model(ids)[:, :5], model(changed)[:, :5]) < 1e-12
    assert gap(model(ids)[:, 5:], model(changed)[:, 5:]) > 1e-3


@pytest.mark.parametrize("name", METHODS)
def test_two_calls_in_a_row_equal_fresh_calls(name):
    model, ids = model_of(name), ids_of(2, 12)
    fresh = [model_of(name)(ids[:, :5]), model_of(name)(ids)]
    again = [model(ids[:, :5]), model(ids), model(ids[:, :5])]
    assert torch.equal(again[0], fresh[0])
    assert torch.equal(again[1], fresh[1])
    assert torch.equal(again[2], fresh[0])
    state = model.state_dict()
    single = model.float()(ids)
    assert single.dtype == torch.float32
    assert gap(single, fresh[1]) < 1e-5
    assert set(state) == set(model.state_dict())


def test_a_cache_is_not_changed_by_using_it():
    model, ids = model_of("sinusoidal"), ids_of(1, 6)
    _, cache = model.decode(ids[:, :5])
    first, _ = model.decode(ids[:, 5:], cache)
    second, _ = model.decode(ids[:, 5:], cache)
    assert torch.equal(first, second)
    assert cache.keys[0].shape[-2] == 5


# oracle


@pytest.mark.parametrize("name", METHODS)
def test_the_fast_path_equals_the_steps(name):
    model, ids = model_of(name, num_layers=1), ids_of(2, 9)
    steps = model.steps(ids)
    assert len(steps) == 1
    layer = model.layers[0]
    x = model.embedding(ids) * SIZES["d_model"] ** 0.5
    x = model.position.embed(x, torch.arange(9))
    merged = steps[0].output.transpose(1, 2).flatten(-2)
    x = x + layer.output(merged)
    wide = layer.widen(layer.before_network(x))
    x = x + layer.narrow(nn.functional.gelu(wide))
    assert gap(model.head(model.norm(x)), model(ids)) < 1e-12
    sums = steps[0].weights.sum(-1)
    assert gap(sums, torch.ones_like(sums)) < 1e-12
    assert steps[0].weights.triu(1).abs().max() == 0


def test_without_positions_it_equals_torchs_own_encoder_layer():
    model, ids = model_of("none", num_layers=1), ids_of(2, 7)
    layer = model.layers[0]
    peer = nn.TransformerEncoderLayer(
        32, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True
    ).double()
    pairs = [
        (peer.self_attn.in_proj_weight, layer.projections.weight),
        (peer.self_attn.in_proj_bias, layer.projections.bias),
        (peer.self_attn.out_proj.weight, layer.output.weight),
        (peer.self_attn.out_proj.bias, layer.output.bias),
        (peer.linear1.weight, layer.widen.weight),
        (peer.linear1.bias, layer.widen.bias),
        (peer.linear2.weight, layer.narrow.weight),
        (peer.linear2.bias, layer.narrow.bias),
    ]
    with torch.no_grad():
        for theirs, ours in pairs:
            theirs.copy_(ours)
    blocked = nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    x = peer(model.embedding(ids) * 32**0.5, src_mask=blocked, is_causal=True)
    assert gap(model.head(model.norm(x)), model(ids)) < 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_generation_is_the_best_token_of_a_full_forward_each_time(name):
    model, ids = model_of(name), ids_of(2, 4)
    row = ids
    for _ in range(6):
        row = torch.cat((row, model(row)[:, -1:].argmax(-1)), 1)
    assert torch.equal(model.generate(ids, 6), row[:, 4:])


@pytest.mark.parametrize("name", METHODS)
def test_generation_from_a_padded_batch_equals_single_prompts(name):
    model, ids = model_of(name), ids_of(2, 7)
    real = torch.ones(2, 7, dtype=torch.bool)
    real[1, :3] = False
    together = model.generate(ids, 5, Places.from_mask(real))
    assert torch.equal(together[:1], model.generate(ids[:1], 5))
    assert torch.equal(together[1:], model.generate(ids[1:, 3:], 5))


@pytest.mark.parametrize("name", METHODS)
def test_construction_on_meta_then_reset_draws_the_same_numbers(name):
    torch.manual_seed(7)
    want = TinyTransformer(19, 32, 4, 2, METHODS[name](**SIZES, max_length=16))
    torch.manual_seed(7)
    want.reset_parameters()
    with torch.device("meta"):
        model = TinyTransformer(19, 32, 4, 2, METHODS[name](**SIZES, max_length=16))
    model = model.to_empty(device="cpu")
    torch.manual_seed(7)
    model.reset_parameters()
    ids = ids_of(2, 9)
    assert torch.equal(model(ids), want(ids))


def test_embeddings_have_unit_length_on_average():
    model = TinyTransformer(5_000, 32, 4, 1, METHODS["none"](**SIZES, max_length=8))
    lengths = model.embedding.weight.norm(dim=-1)
    assert 0.95 < lengths.square().mean() < 1.05


# boundary


@pytest.mark.parametrize("name", METHODS)
def test_a_single_token_works(name):
    model, ids = model_of(name), ids_of(1, 1)
    assert model(ids).shape == (1, 1, 19)
    assert gap(model.decode(ids)[0], model(ids)) < 1e-12
    assert model.generate(ids, 1).shape == (1, 1)


@pytest.mark.parametrize("name", METHODS)
def test_all_parameters_get_gradients(name):
    model, ids = model_of(name), ids_of(2, 16)
    model(ids).square().mean().backward()
    without = [n for n, p in model.named_parameters() if p.grad is None]
    assert without == []
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_a_model_without_a_learned_method_saves_no_position_table():
    assert not [k for k in model_of("sinusoidal").state_dict() if "position" in k]


# message


def test_ids_without_a_batch_are_refused():
    model = model_of("none")
    with pytest.raises(ValueError, match=r"ids have shape \(3,\).*ids\[None\]"):
        model(torch.arange(3))
    assert model(torch.arange(3)[None]).shape == (1, 3, 19)


def test_heads_that_do_not_divide_the_width_are_refused():
    position = METHODS["none"](**SIZES, max_length=8)
    with pytest.raises(ValueError, match="d_model is 10 and num_heads is 4"):
        TinyTransformer(19, 10, 4, 1, position)
    TinyTransformer(19, 12, 4, 1, position)


@pytest.mark.parametrize("name", ["vocab_size", "num_layers"])
def test_empty_models_are_refused(name):
    sizes = {"vocab_size": 3, "d_model": 4, "num_heads": 2, "num_layers": 1}
    position = METHODS["none"](**SIZES, max_length=8)
    with pytest.raises(ValueError, match=f"{name} is 0"):
        TinyTransformer(**(sizes | {name: 0}), position=position)
    TinyTransformer(**sizes, position=position)


def test_generating_nothing_is_refused():
    with pytest.raises(ValueError, match="num_tokens is 0"):
        model_of("none").generate(ids_of(1, 3), 0)
    assert model_of("none").generate(ids_of(1, 3), 1).shape == (1, 1)
