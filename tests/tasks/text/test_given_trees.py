"""Given trees: matched with the sentences of a split, or refused with the sentence named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_texts import SST_TREES, pair_data, sst_data, written, written_trees

from treelax.data.conllu import Sentence, write_conllu
from treelax.data.text.encoding import EncodedText, encode_records
from treelax.data.text.records import Record, Records
from treelax.data.text.vectors import random_vectors
from treelax.data.text.vocabulary import Vocabulary
from treelax.errors import DataError, InputError
from treelax.tasks.text.data import load_text
from treelax.tasks.text.given_trees import TreedText, with_trees
from treelax.trees import is_projective, is_tree


def encoded(*texts: str, dropped: bool = False, lower: bool = False) -> EncodedText:
    """Sentences on lines 1, 2 and so on; perhaps with one that was left out."""

    def read(report):
        if dropped:
            report.drop("neutral", 99)
        for line, text in enumerate(texts, 1):
            yield Record((text,), "x", line, tokens=True)

    return encode_records(Records("train.txt", read), Vocabulary(lower=lower))


def conllu(folder: Path, *sentences: str) -> Path:
    """Words with their heads: ``Dogs/2 bark/0``."""
    trees = []
    for text in sentences:
        pairs = [pair.rpartition("/") for pair in text.split(" ")]
        trees.append(Sentence(tuple(p[0] for p in pairs), tuple(int(p[2]) for p in pairs)))
    write_conllu(folder / "trees.conllu", trees)
    return folder / "trees.conllu"


# ------------------------------------------------------------------ matching


def test_heads_lie_beside_the_words(tmp_path: Path) -> None:
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


def test_trees_stay_when_text_moves_or_changes_its_table(tmp_path: Path) -> None:
    treed = with_trees(encoded("Dogs bark"), conllu(tmp_path, "Dogs/2 bark/0"))
    for other in (
        treed.to("cpu"),
        treed.with_table(random_vectors(["Dogs"], 4)),
        treed.with_labels(["y", "x"]),
        with_trees(treed, conllu(tmp_path, "Dogs/2 bark/0")),
    ):
        assert isinstance(other, TreedText)
        assert other.heads.tolist() == [2, 0]
    assert treed.to("meta").heads.is_meta
    assert treed.to("meta").ids.is_meta


def test_trees_of_sentences_that_were_left_out_are_read_over(tmp_path: Path) -> None:
    data = encoded("a b", "c", "a b", dropped=True)
    path = conllu(tmp_path, "x/0", "a/2 b/0", "y/0 z/1", "c/0", "c/0", "a/0 b/1", "w/0")
    assert with_trees(data, path).heads.tolist() == [2, 0, 0, 0, 1]


def test_several_roots_and_crossing_arcs_are_allowed(tmp_path: Path) -> None:
    treed = with_trees(encoded("a b c d"), conllu(tmp_path, "a/3 b/4 c/0 d/0"))
    assert treed.heads.tolist() == [3, 4, 0, 0]
    assert is_tree(treed.heads)
    assert not is_projective(treed.heads)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("( 1/2 )", "-LRB-/0 1\\/2/0 -RRB-/0"),
        ("`` a ''", '"/0 a/0 "/0'),
        ("-LRB- a", "(/0 a/0"),
        ("3\u00a01/2", "3\u00a01\\/2/0"),
    ],
)
def test_escapes_make_no_difference(tmp_path: Path, text: str, tree: str) -> None:
    assert with_trees(encoded(text), conllu(tmp_path, tree)).heads.tolist() == [0] * len(
        text.split(" ")
    )


def test_a_word_with_a_space(tmp_path: Path) -> None:
    write_conllu(tmp_path / "trees.conllu", [Sentence(("de facto",), (0,))])
    assert with_trees(encoded("de\u00a0facto"), tmp_path / "trees.conllu").heads.tolist() == [0]


def test_capitals_make_a_difference_unless_words_are_in_lower_case(tmp_path: Path) -> None:
    path = conllu(tmp_path, "dogs/2 BARK/0")
    assert with_trees(encoded("Dogs bark", lower=True), path).heads.tolist() == [2, 0]
    with pytest.raises(DataError, match="sentence 1"):
        with_trees(encoded("Dogs bark"), path)


def test_trees_of_pairs_come_in_the_order_of_the_texts(tmp_path: Path) -> None:
    records = [Record(("a b", "c"), "x", 1), Record(("a", "b a"), "y", 2)]
    data = encode_records(records, Vocabulary())
    treed = with_trees(data, conllu(tmp_path, "a/2 b/0", "c/0", "a/0", "b/0 a/1"))
    assert treed.padded_heads(torch.tensor([0, 1]), 0, 2).tolist() == [[2, 0], [0, 0]]
    assert treed.padded_heads(torch.tensor([0, 1]), 1, 2).tolist() == [[0, 0], [0, 1]]


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
def test_words_that_do_not_fit(
    tmp_path: Path, trees: list[str], message: str, dropped: bool
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        with_trees(encoded("a b", "c", dropped=dropped), conllu(tmp_path, *trees))
    assert "\n" not in str(caught.value)


def test_a_tree_too_many(tmp_path: Path) -> None:
    path = conllu(tmp_path, "a/2 b/0", "c/0")
    with pytest.raises(
        DataError, match=r"line 4, sentence 2: is one too many; expected 1 sentence, as many"
    ):
        with_trees(encoded("a b"), path)
    assert len(with_trees(encoded("a b", dropped=True), path)) == 1


def test_heads_in_a_circle(tmp_path: Path) -> None:
    path = conllu(tmp_path, "a/0", "b/0 c/3 d/4 e/2")
    with pytest.raises(DataError, match="line 3, sentence 2: the heads go round in a circle"):
        with_trees(encoded("a", "b c d e"), path)


def test_a_damaged_file_names_the_line(tmp_path: Path) -> None:
    file = written(tmp_path / "trees.conllu", "1\ta\t_\t_\t_\t_\t7\t_\t_\t_")
    with pytest.raises(DataError, match=r"trees\.conllu, line 1: received head 7"):
        with_trees(encoded("a"), file)


def test_trees_are_matched_before_words_have_vectors(tmp_path: Path) -> None:
    data = encoded("a").with_table(random_vectors(["a"], 4))
    with pytest.raises(InputError, match="expected those of a vocabulary"):
        with_trees(data, conllu(tmp_path, "a/0"))


# ------------------------------------------------------------------ in the data of a config


def flat(split: str, *numbers: int) -> list[int]:
    return [head for number in numbers for head in SST_TREES[split][number][1]]


def test_sst_with_trees(tmp_path: Path) -> None:
    data = load_text(sst_data(tmp_path, trees=written_trees(tmp_path)))
    assert {name: heads.tolist() for name, heads in data.heads.items()} == {
        "train": flat("train", 0, 2, 3),
        "dev": flat("dev", 0, 2),
        "test": flat("test", 0),
    }
    for name, split in data.splits.items():
        assert data.heads[name].shape == split.ids.shape
    five = load_text(sst_data(tmp_path, trees=written_trees(tmp_path), classes="five"))
    assert five.heads["dev"].tolist() == flat("dev", 0, 1, 2)


def test_long_sentences_are_left_out_with_their_trees(tmp_path: Path) -> None:
    data = load_text(sst_data(tmp_path, trees=written_trees(tmp_path), max_length=3))
    assert data.heads["train"].tolist() == flat("train", 0, 3)


def test_pairs_with_trees(tmp_path: Path) -> None:
    config = pair_data(tmp_path, trees=str(tmp_path / "{split}.conllu"))
    for split in ("train", "dev", "test"):
        lines = Path(getattr(config, split)).read_text("utf-8").splitlines()[1:]
        texts = [text.split() for line in lines for text in line.split("\t")[1:]]
        chains = [Sentence(tuple(words), tuple(range(len(words)))) for words in texts]
        write_conllu(tmp_path / f"{split}.conllu", chains)
    data = load_text(config)
    for name, split in data.splits.items():
        expected = [i for n in split.lengths.flatten().tolist() for i in range(n)]
        assert data.heads[name].tolist() == expected


def test_a_missing_file_of_trees(tmp_path: Path) -> None:
    trees = written_trees(tmp_path)
    Path(trees.replace("{split}", "dev")).unlink()
    with pytest.raises(DataError, match=r"dev\.conllu: does not exist; expected a CoNLL-U file"):
        load_text(sst_data(tmp_path, trees=trees))
