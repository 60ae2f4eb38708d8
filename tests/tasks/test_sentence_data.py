"""The texts of a config: every format, mixing, long texts, vectors, given trees, and what is refused."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_runs import SNLI_SAMPLE

from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.data.text.encoding import encode_records
from treelax.apps.data.text.records import Record, Records
from treelax.apps.data.text.vectors import FIRST_UNKNOWN, UNKNOWN
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.text import data as text_data
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import joined, load_text, with_trees, without_long
from treelax.errors import DataError, InputError

FIRST_KNOWN = FIRST_UNKNOWN + UNKNOWN
ONE = str(SNLI_SAMPLE)


@pytest.fixture(autouse=True)
def _new_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(text_data, "_latest", None)


def written(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)


def files(folder, name, *lines, **settings):
    """A config whose training and dev data have some lines."""
    file = written(folder / name, *lines)
    defaults = {"train": file, "dev": file, "tokens": True, "vector_size": 4}
    return DataConfig(**defaults | settings)


PAIRS = ["yes\tdogs bark\tbark dogs", "no\tdogs bark loudly\tcats", "no\tbirds\tcats sing a song"]
CLASSES = [
    "asleep,the dog sleeps",
    "awake,the dog barks loudly",
    "asleep,a cat",
    "awake,birds sing",
]
TAGS = ["Dogs NOUN", "bark VERB", "", "Hi INTJ", "", "Old ADJ", "dogs NOUN"]


def pair_data(folder, **settings):
    text = {"text": ("premise", "hypothesis")}
    return files(folder, "pairs.tsv", "label\tpremise\thypothesis", *PAIRS, **text | settings)


def class_data(folder, **settings):
    columns = {"text": ("words",), "label": "state"}
    return files(folder, "classes.csv", "state,words", *CLASSES, **columns | settings)


def tag_data(folder, **settings):
    return files(folder, "tags.txt", *TAGS, **{"format": "tagging"} | settings)


DATA = {"pair": pair_data, "classify": class_data, "tag": tag_data}
SST = {
    "train": [
        "(1 (2 Not) (2 (2 much) (2 fun)))",
        "(2 (2 It) (2 (2 is) (2 (2 a) (2 film))))",
        "(3 (3 Good) (2 (2 -LRB-) (2 (3 (2 3\u00a01\\/2) (2 of)) (2 (2 5) (2 -RRB-)))))",
        "(4 Superb)",
    ],
    "dev": ["(0 (2 No) (2 fun))", "(2 Hm)", "(4 (2 Much) (3 fun))"],
    "test": ["(3 (2 A) (3 film))"],
}
MULTINLI = {
    "train": [
        "neutral\tA dog barks .\tIt is big .\tfiction",
        "entailment\tA dog barks .\tA dog .\tfiction",
        "contradiction\tNobody runs .\tHe runs .\ttravel",
    ],
    "dev_matched": ["neutral\tA cat .\tIt barks .\tfiction"],
    "dev_mismatched": ["neutral\tIt is .\tHe is .\tverbatim", "entailment\tIt .\tIt .\tverbatim"],
}


def sst_data(folder, **settings):
    for split, lines in SST.items():
        written(folder / "sst" / f"{split}.txt", *lines)
    return DataConfig(**{"format": "sst", "path": str(folder / "sst"), "vector_size": 4} | settings)


def multinli_data(folder, *splits, **settings):
    for split in splits or MULTINLI:
        written(folder / "multinli" / f"{split}.tsv", *MULTINLI[split])
    path = str(folder / "multinli")
    return DataConfig(format="multinli", path=path, vector_size=4, **settings)


def words_of(data, split, example, which=0):
    """The words of a text by the rows of their vectors; None where the word is unknown."""
    names = {row: word for word, row in data.vectors.known.items()}
    text = data.splits[split]
    begin, end = text.offsets[example * text.texts + which :][:2].tolist()
    return [names.get(row) for row in text.ids[begin:end].tolist()]


def labels_of(data, split):
    return [data.labels[number] for number in data.splits[split].labels.tolist()]


def sizes(data):
    return [len(split) for split in data.splits.values()]


# ------------------------------------------------------------------ every format


def test_sst(tmp_path):
    data = load_text(sst_data(tmp_path))
    assert (data.labels, sizes(data)) == (("negative", "positive"), [3, 2, 1])
    assert labels_of(data, "train") == ["negative", "positive", "positive"]
    assert words_of(data, "train", 1) == ["Good", "(", "3\u00a01/2", "of", "5", ")"]
    assert data.notes["dev"] == ("1 line dropped: neutral (2)",)
    five = load_text(sst_data(tmp_path, classes="five"))
    assert sizes(five) == [4, 3, 1]
    assert labels_of(five, "dev") == ["very negative", "neutral", "very positive"]


def test_tables_are_read_by_their_suffix(tmp_path):
    data = load_text(pair_data(tmp_path))
    assert (sizes(data), data.splits["train"].texts) == ([3, 3], 2)
    assert labels_of(data, "dev") == ["yes", "no", "no"]
    assert words_of(data, "train", 1, 1) == ["cats"]
    data = load_text(class_data(tmp_path))
    assert (data.labels, data.splits["train"].texts) == (("asleep", "awake"), 1)
    lines = ["text\tlabel", '"a\tyes', 'b"\tno']
    assert sizes(load_text(files(tmp_path, "a.tsv", *lines))) == [2, 2]
    with pytest.raises(DataError, match=r"a\.csv, line 1: no column 'text'"):
        load_text(files(tmp_path, "a.csv", *lines))


def test_snli_mixed_into_multinli(tmp_path):
    plain = load_text(multinli_data(tmp_path))
    data = load_text(multinli_data(tmp_path, mix=ONE, mix_share=0.5))
    assert (list(data.splits), len(data.splits["train"]), data.mixed) == (list(plain.splits), 7, 4)
    assert labels_of(data, "train")[:3] == labels_of(plain, "train")
    assert labels_of(data, "train")[3:] == ["neutral", "entailment", "contradiction", "entailment"]
    assert words_of(data, "train", 2) == words_of(plain, "train", 2)
    assert words_of(data, "train", 4, 1) == ["A", "woman", "is", "working", "."]
    assert data.notes["mix"] == ("1 line dropped: no gold label (2)",)
    train, own = data.splits["train"], f"{tmp_path}/multinli/train.tsv"
    assert [train.where(index) for index in range(7)] == [
        *(f"{own}, line {line}" for line in (1, 2, 3)),
        *(f"{ONE}, line {line}" for line in (1, 3, 4, 5)),
    ]
    assert train.source == f"{own} and {ONE}"


def test_a_corpus_that_was_fetched_needs_no_path(tmp_path):
    expected = load_text(sst_data(tmp_path))
    there = Path(os.environ["TREELAX_CACHE"]) / "trainDevTestTrees_PTB.zip"
    with zipfile.ZipFile(there, "w") as archive:
        for file in (tmp_path / "sst").iterdir():
            archive.write(file, f"trees/{file.name}")
    fetched = load_text(sst_data(tmp_path, path=None))
    assert set(fetched.splits) == {"train", "dev", "test"}
    assert torch.equal(fetched.splits["test"].ids, expected.splits["test"].ids)
    # other files are not mixed with it, unless that is asked for
    train = str(tmp_path / "sst" / "train.txt")
    with pytest.raises(InputError, match=rf"data\.dev is none beside --train; .* --from {there}$"):
        load_text(sst_data(tmp_path, path=None, train=train))
    data = load_text(sst_data(tmp_path, path=str(there), train=train))
    for _ in ("read", "cached"):
        assert data.splits["dev"].source == f"{there}: trees/dev.txt"
        assert data.splits["dev"].where(0) == f"{there}: trees/dev.txt, line 1"


def test_runs_of_a_sweep_share_the_data_until_a_file_changes(tmp_path):
    config = class_data(tmp_path)
    data = load_text(config, lambda done, split: None)
    assert load_text(replace(config)) is data
    assert load_text(replace(config, seed=1)) is not data
    written(Path(str(config.dev)), "state,words", *CLASSES[:2])
    os.utime(str(config.dev), ns=(1, 1))
    assert len(load_text(config).splits["dev"]) == 2


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_the_fingerprint_tells_data_apart_that_training_depends_on(tmp_path, vectors, whole):
    copies = {
        s: written(tmp_path / f"{s}.tsv", "label\tpremise\thypothesis", *PAIRS)
        for s in ("dev", "test")
    }
    config = pair_data(tmp_path, **copies)
    if vectors and not whole:
        file = written(tmp_path / "v.txt", "dogs 1 2", "cats 3 1", "bark 2 2", "owls 2 3", "a 1 0")
        config = replace(config, vectors=file)
    fingerprint = load_text(config, whole_words=whole).fingerprint()

    def changed(split, old, new):
        path = Path(str(getattr(config, split)))
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        other = load_text(config, whole_words=whole).fingerprint()
        path.write_text(text)
        assert load_text(config, whole_words=whole).fingerprint() == fingerprint
        return other != fingerprint

    assert changed("train", "dogs bark loudly", "cats bark loudly")
    assert changed("train", "no\tbirds", "yes\tbirds")
    assert changed("dev", "no\tbirds", "no\tcats")
    # words of the test set have rows too, but no part in training
    assert not changed("test", "dogs bark", "owls bark")


# ------------------------------------------------------------------ vectors, long texts


def test_random_vectors_are_for_words_of_the_training_data_only(tmp_path):
    rows = ["a b\tyes", "c\tno", "much too long this\tno"]
    dev = written(tmp_path / "dev.tsv", "text\tlabel", "a new c\tno")
    data = load_text(files(tmp_path, "train.tsv", "text\tlabel", *rows, dev=dev, max_length=2))
    assert data.vectors.known == {"a": FIRST_KNOWN, "b": FIRST_KNOWN + 1, "c": FIRST_KNOWN + 2}
    assert data.vectors.matrix.shape == (FIRST_KNOWN + 3, 4)
    assert words_of(data, "dev", 0) == ["a", None, "c"]
    assert FIRST_UNKNOWN <= int(data.splits["dev"].ids[1]) < FIRST_KNOWN
    assert data.notes["train"] == (
        "1 example of more than 2 words left out; --set data.max_length=N keeps more",
    )
    assert data.splits["train"].lines.tolist() == [2, 3]
    assert data.notes["dev"] == ()


def test_vectors_from_a_file_are_for_all_words(tmp_path):
    vectors = written(tmp_path / "vectors.txt", "the 3 4", "cat 0 2", "sings 1 0", "extra 1 1")
    dev = written(tmp_path / "dev.csv", "state,words", "awake,the cat sings")
    config = class_data(tmp_path, vectors=vectors, dev=dev)
    data = load_text(config)
    assert words_of(data, "dev", 0) == ["the", "cat", "sings"]
    assert data.coverage == (3, 10)
    raw = load_text(replace(config, normalise=False)).vectors
    for table, expected in ((data.vectors, [0.6, 0.8]), (raw, [3, 4])):
        row = table.matrix[table.known["the"]]
        assert row.tolist() == pytest.approx(expected)


@given(st.lists(st.tuples(*[st.integers(1, 5)] * 2), min_size=1, max_size=6), st.integers(1, 5))
def test_without_long_keeps_what_a_filter_of_records_keeps(lengths, longest):
    texts = [tuple(" ".join("abcde"[:n]) for n in pair) for pair in lengths]
    records = [Record(pair, str(i), i) for i, pair in enumerate(texts)]
    short = [r for r, n in zip(records, lengths, strict=True) if max(n) <= longest]
    data = encode_records(records, Vocabulary(list("abcde")))
    if not short:
        with pytest.raises(InputError):
            without_long(data, longest)
        return
    kept, left_out = without_long(data, longest)
    expected = encode_records(short, Vocabulary(list("abcde"))).with_labels(data.label_names)
    for name in ("ids", "offsets", "labels", "lines"):
        assert torch.equal(getattr(kept, name), getattr(expected, name))
    assert left_out == len(records) - len(short)
    both = joined(kept, expected)
    rows = expected.padded(torch.arange(len(short)), 1, 5)
    assert torch.equal(both.padded(torch.arange(2 * len(short)), 1, 5), rows.repeat(2, 1))


# ------------------------------------------------------------------ data that are refused

UNLABELLED = ("sentence1_binary_parse\tsentence2_binary_parse", "( A dog )\t( A cat )")


def table(make, name, *lines, split="dev", **settings):
    """A config of small data with one split in another file."""
    return lambda f: make(f, **{split: written(f / name, *lines)}, **settings)


REFUSED = [
    (lambda f: DataConfig(format="snli"), "fetch it with treelax data snli, or give --from"),
    (
        lambda f: DataConfig(format="sst", train=ONE),
        "data.dev is none beside --train; .* --from PA",
    ),
    (lambda f: DataConfig(format="snli", dev=ONE, test=ONE), "none beside --dev and --test; exp"),
    (lambda f: class_data(f, dev=None), "data.dev is none; .* --dev FILE"),
    (lambda f: tag_data(f, train=None), "data.train is none; .* --train FILE"),
    (lambda f: DataConfig(format="sst", path=str(f / "no")), "no: does not exist"),
    (lambda f: DataConfig(format="snli", path=ONE), "one file, which would serve as every split"),
    (lambda f: multinli_data(f, "train"), "for dev_matched"),
    (
        table(class_data, "a.csv", "state,words", "awake,a cat", "dizzy,a dog"),
        r"a\.csv, line 3: received the label 'dizzy'; expected .* 'asleep', 'awake'",
    ),
    (
        table(tag_data, "a.txt", "Dogs NOUN\n", "Hi INTJ\nthere ADVERB"),
        r"a\.txt, line 3: received the label 'ADVERB'",
    ),
    (
        table(multinli_data, "multinli_0.9_test_matched_unlabeled.txt", *UNLABELLED, split="test"),
        "has no labels; expected labelled data for test: leave out --test",
    ),
    (table(class_data, "a.tsv", "words", "a cat"), r"a\.tsv, line 1: no column 'state'; it has"),
    (lambda f: class_data(f, label="kind"), "no column 'kind'; .*; --text and --label name the"),
    (lambda f: class_data(f, text=("word",)), "no column 'word'; did you mean 'words'"),
    (table(class_data, "a.tsv", "state;words", "a;b"), "expected commas in .csv, tabs in .tsv$"),
    (table(pair_data, "a.jsonl", '{"gold_label": "neutral"}', split="mix"), "it has: gold_label$"),
    (lambda f: pair_data(f, mix=ONE), r"snli_sample\.jsonl, line 1: received the label 'neutral'"),
    (
        lambda f: files(f, "a.tsv", "text\tlabel", "b\ta"),
        "received one label, 'a', .* at least two",
    ),
    (
        lambda f: files(f, "a.txt", "a X", "b Y", format="tagging", max_length=1),
        "a text of more than",
    ),
    (
        lambda f: class_data(f, trees=str(f / "{split}.conllu")),
        r"\.conllu: does not exist; expected a CoNLL-U file",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_data_that_are_refused(tmp_path, make, message):
    with pytest.raises((DataError, InputError), match=message) as caught:
        load_text(make(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "line", "reason"),
    [
        ("pair", "yes\tonly one text", "wrong number of columns"),
        ("classify", "awake,one,too many", "wrong number of columns"),
        ("tag", "\nDogs NOUN extra\n", "wrong number of columns"),
        ("classify", "awake," + "w " * 33_000, "too many words"),
    ],
)
def test_unusable_lines_are_refused_or_counted(tmp_path, kind, line, reason):
    config = DATA[kind](tmp_path)
    good = load_text(config)
    train = Path(str(config.train))
    lines = train.read_text().splitlines()
    train.write_text("\n".join([*lines, line, ""]))
    number = len(lines) + 1 + (kind == "tag")
    data = load_text(replace(config, unusable="drop"))
    assert torch.equal(data.splits["train"].ids, good.splits["train"].ids)
    assert data.notes["train"] == (f"1 line dropped: {reason} ({number})",)
    with pytest.raises(DataError, match=rf"line {number}: .* --set data.unusable=drop"):
        load_text(config)  # though the cache has the lines without it


# ------------------------------------------------------------------ given trees


def encoded(*texts, dropped=False, lower=False):
    """Sentences on lines 1, 2 and so on; perhaps with one that was left out."""

    def read(report):
        if dropped:
            report.drop("neutral", 99)
        for line, text in enumerate(texts, 1):
            yield Record((text,), "x", line, tokens=True)

    return encode_records(Records("train.txt", read), Vocabulary(lower=lower))


def conllu(file, *sentences):
    """Words with their heads: ``Dogs/2 bark/0``."""
    pairs = [[part.rpartition("/") for part in text.split(" ")] for text in sentences]
    trees = [Sentence(tuple(p[0] for p in row), tuple(int(p[2]) for p in row)) for row in pairs]
    write_conllu(file, trees)
    return file


@pytest.mark.parametrize(
    ("text", "tree", "lower"),
    [
        ("( 1/2 )", "-LRB-/0 1\\/2/0 -RRB-/0", False),
        ("`` a ''", '"/0 a/0 "/0', False),
        ("-LRB- a", "(/0 a/0", False),
        ("3\u00a01/2", "3\u00a01\\/2/0", False),
        ("Dogs bark", "dogs/0 BARK/0", True),
    ],
)
def test_escapes_make_no_difference(tmp_path, text, tree, lower):
    file = conllu(tmp_path / "a.conllu", tree)
    heads = with_trees(encoded(text, lower=lower), file).heads
    assert heads.tolist() == [0] * len(text.split(" "))


@given(st.lists(st.tuples(st.sampled_from(["a", "b c", "c b a"]), st.booleans()), min_size=1))
def test_every_choice_of_sentences_finds_its_trees(tmp_path_factory, sentences):
    """Each tree is known by its order of heads: the one found must be of the same words."""
    words = [text for text, keep in sentences if keep] or [sentences[0][0]]
    chains = [" ".join(f"{w}/{i}" for i, w in enumerate(text.split())) for text, _ in sentences]
    path = conllu(tmp_path_factory.mktemp("trees") / "a.conllu", *chains)
    heads = with_trees(encoded(*words, dropped=True), path).heads.tolist()
    assert heads == [i for text in words for i in range(len(text.split()))]


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
        (["A/2 b/0", "c/0"], "sentence (1|3)"),
        (["a/2 b/1", "c/0"], "line 1, sentence 1: the heads go round in a circle"),
    ],
)
def test_trees_that_do_not_fit(tmp_path, trees, message, dropped):
    path = conllu(tmp_path / "trees.conllu", *trees)
    with pytest.raises(DataError, match=message) as caught:
        with_trees(encoded("a b", "c", dropped=dropped), path)
    assert "\n" not in str(caught.value)


def test_a_tree_too_many(tmp_path):
    path = conllu(tmp_path / "trees.conllu", "a/2 b/0", "c/0")
    with pytest.raises(
        DataError, match=r"line 4, sentence 2: is one too many; expected 1 sentence"
    ):
        with_trees(encoded("a b"), path)


def test_sst_with_trees(tmp_path):
    """Trees of all sentences, also of the neutral ones; one with two roots, one not projective."""
    words = {
        "train": ["Not much fun", "It is a film", "Good -LRB- 3\u00a01/2 of 5 -RRB-", "Superb"],
        "dev": ["No fun", "Hm", "Much fun"],
        "test": ["A film"],
    }
    heads = {"train": ["330", "4440", "041034", "0"], "dev": ["20", "0", "01"], "test": ["20"]}
    for split, rows in heads.items():
        pairs = [zip(t.split(" "), r, strict=True) for t, r in zip(words[split], rows, strict=True)]
        conllu(tmp_path / f"{split}.conllu", *(" ".join(map("/".join, pair)) for pair in pairs))
    trees = str(tmp_path / "{split}.conllu")
    binary, five = (
        load_text(sst_data(tmp_path, trees=trees, classes=c)) for c in ("binary", "five")
    )
    train = binary.splits["train"]
    assert train.heads.tolist() == [3, 3, 0, 0, 4, 1, 0, 3, 4, 0]
    assert train.padded_heads(torch.tensor([2, 0]), 0, 4).tolist() == [[0, 0, 0, 0], [3, 3, 0, 0]]
    assert binary.splits["dev"].heads.tolist() == [2, 0, 0, 1]
    assert five.splits["dev"].heads.tolist() == [2, 0, 0, 0, 1]
