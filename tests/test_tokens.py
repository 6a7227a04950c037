"""Words to ids: the same words have the same ids in any order."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coursekit.tokens import token_ids, tokenize, vocabulary

words = st.lists(st.sampled_from(["the", "dog", "bites", "man", ".", "a1"]), min_size=1)


@given(tokens=words, shuffle=st.randoms(use_true_random=False))
def test_the_order_of_a_text_does_not_change_its_vocabulary(tokens, shuffle):
    reordered = list(tokens)
    shuffle.shuffle(reordered)
    assert vocabulary(reordered) == vocabulary(tokens)
    assert list(vocabulary(reordered)) == list(vocabulary(tokens))


@given(tokens=words)
def test_ids_lead_back_to_the_tokens(tokens):
    vocab = vocabulary(tokens)
    word_of = {index: token for token, index in vocab.items()}
    assert [word_of[index] for index in token_ids(tokens, vocab).tolist()] == tokens


def test_the_same_word_has_the_same_id_wherever_it_stands():
    tokens = tokenize("The dog bites the man")
    ids = token_ids(tokens, vocabulary(tokens)).tolist()
    assert ids[0] == ids[3]
    assert len(set(ids)) == 4


@given(text=st.text())
def test_tokenize_agrees_with_reading_one_character_at_a_time(text):
    read, word = [], ""
    for character in text.lower() + " ":
        if character.isalnum() or character == "_":
            word += character
            continue
        if word:
            read.append(word)
            word = ""
        if not character.isspace():
            read.append(character)
    assert tokenize(text) == read


@given(tokens=words)
def test_vocabulary_agrees_with_counting_the_smaller_words(tokens):
    vocab = vocabulary(tokens)
    assert set(vocab) == set(tokens)
    for token in tokens:
        assert vocab[token] == len({other for other in tokens if other < token})


def test_an_iterator_of_tokens_is_numbered_as_a_list_is():
    assert vocabulary(iter(["b", "a", "b"])) == {"a": 0, "b": 1}


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_a_text_without_a_token_gives_none(text):
    assert tokenize(text) == []


def test_one_word_is_one_token_with_id_zero():
    ids = token_ids(tokenize("Dog"), vocabulary(["dog"]))
    assert torch.equal(ids, torch.tensor([0]))


def test_no_tokens_have_no_ids_but_still_whole_numbers():
    ids = token_ids([], {})
    assert ids.shape == (0,)
    assert ids.dtype == torch.int64
    assert vocabulary([]) == {}


@pytest.mark.parametrize("given_one", [["the", "dog"], None, b"the dog"])
def test_a_text_that_is_not_a_string_is_refused(given_one):
    tokenize("the dog")
    kind = type(given_one).__name__
    with pytest.raises(ValueError, match=f"text is {kind}, but .* from a string"):
        tokenize(given_one)


def test_words_without_an_id_are_named_in_alphabetical_order():
    vocab = vocabulary(["dog"])
    assert token_ids(["dog"], vocab).tolist() == [0]
    with pytest.raises(
        ValueError, match=r"\['cat', 'man'\] not in the vocabulary of 1 tokens"
    ):
        token_ids(["man", "dog", "cat", "man"], vocab)


def test_a_text_that_was_not_cut_is_refused():
    with pytest.raises(ValueError, match="letter by letter"):
        vocabulary("dog")
    assert vocabulary(["dog"]) == {"dog": 0}
