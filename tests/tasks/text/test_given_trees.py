"""Given trees: matched with the sentences of a split, or refused with the sentence named."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_texts import SST_TREES, sst_data, written_trees

from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.data.text.encoding import encode_records
from treelax.apps.data.text.records import Record, Records
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.text.data import load_text, with_trees
from treelax.errors import DataError


def encoded(*texts, dropped=False, lower=False):
    """Sentences on lines 1, 2 and so on; perhaps with one that was left out."""

    def read(report):
        if dropped:
            report.drop("neutral", 99)
        for line, text in enumerate(texts, 1):
            yield Record((text,), "x", line, tokens=True)

    return encode_records(Records("train.txt", read), Vocabulary(lower=lower))


def conllu(folder, *sentences):
    """Words with their heads: ``Dogs/2 bark/0``."""
    trees = []
    for text in sentences:
        pairs = [pair.rpartition("/") for pair in text.split(" ")]
        trees.append(Sentence(tuple(p[0] for p in pairs), tuple(int(p[2]) for p in pairs)))
    write_conllu(folder / "trees.conllu", trees)
    return folder / "trees.conllu"


# ------------------------------------------------------------------ matching


def test_heads_lie_beside_the_words(tmp_path):
    data = encoded("Dogs bark", "Hi", "Old dogs sleep")
    path = conllu(tmp_path, "Dogs/2 bark/0", "Hi/0", "Old/2 dogs/3 sleep/0")
    treed = with_trees(data, path)
    assert treed.heads.tolist() == [2, 0, 0, 2, 3, 0]
    assert treed.heads.dtype == torch.int32
    indices = torch.tensor([2, 0, 1])
    assert treed.padded_heads(indices, 0, 4).tolist() == [[2, 3, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    for name in ("ids", "offsets", "labels", "lines"):
        assert torch.equal(getattr(treed, name), getattr(data, name))
    assert (treed.source, treed.label_names, treed.notes) == ("train.txt", ("x",), ())


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("( 1/2 )", "-LRB-/0 1\\/2/0 -RRB-/0"),
        ("`` a ''", '"/0 a/0 "/0'),
        ("-LRB- a", "(/0 a/0"),
        ("3\u00a01/2", "3\u00a01\\/2/0"),
    ],
)
def test_escapes_make_no_difference(tmp_path, text, tree):
    assert with_trees(encoded(text), conllu(tmp_path, tree)).heads.tolist() == [0] * len(
        text.split(" ")
    )


def test_capitals_make_a_difference_unless_words_are_in_lower_case(tmp_path):
    path = conllu(tmp_path, "dogs/2 BARK/0")
    assert with_trees(encoded("Dogs bark", lower=True), path).heads.tolist() == [2, 0]
    with pytest.raises(DataError, match="sentence 1"):
        with_trees(encoded("Dogs bark"), path)


kept = st.lists(st.tuples(st.sampled_from(["a", "b c", "c b a"]), st.booleans()), min_size=1)


@given(kept.filter(lambda sentences: any(keep for _, keep in sentences)))
def test_every_choice_of_sentences_finds_its_trees(tmp_path_factory, sentences):
    """Each tree is known by its order of heads: the one found must be of the same words."""
    folder = tmp_path_factory.mktemp("trees")
    words = [text for text, keep in sentences if keep]
    chains = [" ".join(f"{w}/{i}" for i, w in enumerate(text.split())) for text, _ in sentences]
    path = conllu(folder, *chains)
    heads = with_trees(encoded(*words, dropped=True), path).heads.tolist()
    assert heads == [i for text in words for i in range(len(text.split()))]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(
    ("trees", "message"),
    [
        (
            ["a/2 b/0", "c/2 d/0"],
            r"trees\.conllu, line 4, sentence 2: received 'd' from word 2; expected '' from word 2 of "
            r"train\.txt, line 2: give trees",
        ),
        (
            ["a/2 b/0", "d/0"],
            r"line 4, sentence 2: received 'd'; expected 'c' of train\.txt, line 2",
        ),
        (["a/2 b/0"], r"trees\.conllu, sentence 2: received the end of the file; expected 'c'"),
        (["c/0", "a/2 b/0"], r"sentence (1|3): received ('c'|the end of the file); exp"),
    ],
)
def test_words_that_do_not_fit(tmp_path, trees, message, dropped):
    with pytest.raises(DataError, match=message) as caught:
        with_trees(encoded("a b", "c", dropped=dropped), conllu(tmp_path, *trees))
    assert "\n" not in str(caught.value)


def test_a_tree_too_many(tmp_path):
    path = conllu(tmp_path, "a/2 b/0", "c/0")
    with pytest.raises(
        DataError, match=r"line 4, sentence 2: is one too many; expected 1 sentence, as many"
    ):
        with_trees(encoded("a b"), path)
    assert len(with_trees(encoded("a b", dropped=True), path)) == 1


def test_heads_in_a_circle(tmp_path):
    path = conllu(tmp_path, "a/0", "b/0 c/3 d/4 e/2")
    with pytest.raises(DataError, match="line 3, sentence 2: the heads go round in a circle"):
        with_trees(encoded("a", "b c d e"), path)


# ------------------------------------------------------------------ in the data of a config


def flat(split, *numbers):
    return [head for number in numbers for head in SST_TREES[split][number][1]]


def test_sst_with_trees(tmp_path):
    data = load_text(sst_data(tmp_path, trees=written_trees(tmp_path)))
    assert {name: split.heads.tolist() for name, split in data.splits.items()} == {
        "train": flat("train", 0, 2, 3),
        "dev": flat("dev", 0, 2),
        "test": flat("test", 0),
    }
    five = load_text(sst_data(tmp_path, trees=written_trees(tmp_path), classes="five"))
    assert five.splits["dev"].heads.tolist() == flat("dev", 0, 1, 2)
