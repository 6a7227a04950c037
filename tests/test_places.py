"""Places: positions and documents, and what decoding keeps of them."""

import pytest
import torch

from coursekit.places import Cache, Places, append, next_places, visible


def cache_of(positions, documents=None):
    return Cache([], [], Places(torch.tensor(positions), documents))


# property


def test_packed_documents_never_see_each_other():
    documents = torch.tensor([[0, 0, 0, 1, 1]])
    places = Places(torch.tensor([[0, 1, 2, 0, 1]]), documents)
    mask = visible(places, places)[0, 0]
    assert not mask[3:, :3].any()
    assert not mask[:3, 3:].any()


def test_padding_is_seen_by_no_real_token():
    real = torch.tensor([[False, False, True, True], [True, True, True, True]])
    places = Places.from_mask(real)
    mask = visible(places, places)[:, 0]
    assert not mask[0, 2:, :2].any()
    assert torch.equal(mask[1], torch.ones(4, 4, dtype=torch.bool).tril())


def test_every_token_sees_itself_so_that_no_row_is_empty():
    real = torch.tensor([[False, False, True, True]])
    places = Places.from_mask(real)
    assert visible(places, places)[0, 0].diagonal().all()


# oracle


def test_visible_agrees_with_a_loop():
    generator = torch.Generator().manual_seed(1)
    new = Places(
        torch.randint(9, (2, 4), generator=generator),
        torch.randint(3, (2, 4), generator=generator),
    )
    every = Places(
        torch.randint(9, (2, 6), generator=generator),
        torch.randint(3, (2, 6), generator=generator),
    )
    mask = visible(new, every)
    assert mask.shape == (2, 1, 4, 6)
    for b in range(2):
        for q in range(4):
            for k in range(6):
                later = every.positions[b, k] > new.positions[b, q]
                other = every.documents[b, k] != new.documents[b, q]
                assert mask[b, 0, q, k].item() == (not later and not other)


def test_appending_in_parts_equals_the_whole():
    positions = torch.tensor([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]])
    documents = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    first = Places(positions[:, :3], documents[:, :3])
    both = append(Cache([], [], first), Places(positions[:, 3:], documents[:, 3:]))
    assert torch.equal(both.positions, positions)
    assert torch.equal(both.documents, documents)


# boundary


def test_places_count_from_zero_without_a_cache():
    places = next_places(3, None, torch.device("cpu"))
    assert places.positions.tolist() == [0, 1, 2]
    assert places.documents is None


def test_places_go_on_from_each_row_of_the_cache():
    cache = cache_of([[0, 0, 1], [0, 1, 2]], torch.tensor([[0, 1, 1], [1, 1, 1]]))
    places = next_places(2, cache, torch.device("cpu"))
    assert places.positions.tolist() == [[2, 3], [3, 4]]
    assert places.documents.tolist() == [[1, 1], [1, 1]]


def test_a_prompt_of_six_is_followed_by_position_six():
    cache = cache_of([0, 1, 2, 3, 4, 5])
    assert next_places(1, cache, torch.device("cpu")).positions.tolist() == [6]


def test_one_row_that_is_written_as_a_batch_meets_a_row_for_each():
    both = append(cache_of([[0, 1]]), Places(torch.tensor([[2], [7]])))
    assert both.positions.tolist() == [[0, 1, 2], [0, 1, 7]]


def test_one_row_for_all_meets_a_row_for_each():
    both = append(cache_of([0, 1]), Places(torch.tensor([[2], [7]])))
    assert both.positions.tolist() == [[0, 1, 2], [0, 1, 7]]


# message


def test_documents_in_one_call_alone_are_refused():
    cached = cache_of([[0, 1]], torch.tensor([[0, 0]]))
    new = Places(torch.tensor([[2]]))
    with pytest.raises(ValueError, match="not for both"):
        append(cached, new)
    with pytest.raises(ValueError, match="not for both"):
        append(cache_of([[0, 1]]), Places(new.positions, torch.tensor([[0]])))
    append(cached, Places(new.positions, torch.tensor([[0]])))
