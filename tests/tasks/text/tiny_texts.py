"""Small files of every format, and configs of small models on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.tasks.text.config import DataConfig, ModelConfig, TextConfig, TrainConfig

SNLI_SAMPLE = Path(__file__).parents[2] / "data" / "text" / "snli_sample.jsonl"
SIZES = {
    "projection_size": 12,
    "encoder_size": 6,
    "scorer_size": 8,
    "gcn_size": 8,
    "output_size": 12,
    "dropout": 0.0,
}


def written(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)


def tiny_model(**changes):
    return ModelConfig(**SIZES | changes)


def tiny(kind, data, *, seed=3, **model):
    train = TrainConfig(batch_size=4, learning_rate=1e-2, pool=2)
    return TextConfig(kind=kind, seed=seed, data=data, model=tiny_model(**model), train=train)


def trained_with(config, **train):
    return replace(config, train=replace(config.train, **train))


# ------------------------------------------------------------------ data that can be learned

PAIRS = [
    ("yes", "dogs bark", "bark dogs"),
    ("no", "dogs bark loudly", "cats sleep"),
    ("yes", "cats", "cats"),
    ("no", "cats sleep", "dogs"),
    ("yes", "birds sing a song", "a song birds sing"),
    ("no", "birds sing", "cats sing a very long song"),
    ("yes", "a dog", "a dog"),
    ("no", "a dog sleeps here", "a bird sings"),
    ("yes", "fish swim", "fish swim"),
    ("no", "fish", "a dog sleeps here"),
]


def pair_data(folder, **changes):
    """Ten pairs: whether both have the same words."""
    rows = ["\t".join(row) for row in PAIRS]
    head = "label\tpremise\thypothesis"
    settings = {
        "train": written(folder / "pairs" / "train.tsv", head, *rows),
        "dev": written(folder / "pairs" / "dev.tsv", head, *rows[3:8]),
        "test": written(folder / "pairs" / "test.tsv", head, *rows[:2]),
        "text": ("premise", "hypothesis"),
        "tokens": True,
        "vector_size": 12,
    }
    return DataConfig(format="table", **settings | changes)


def class_data(folder, **changes):
    """Six sentences: whether somebody sleeps."""
    rows = [
        "asleep,the dog sleeps",
        "awake,the dog barks loudly at a cat",
        "asleep,a very old cat sleeps",
        "awake,birds sing",
        "asleep,sleeps",
        "awake,a cat",
    ]
    settings = {
        "train": written(folder / "classes" / "train.csv", "state,words", *rows),
        "dev": written(folder / "classes" / "dev.csv", "state,words", *rows[1:]),
        "text": ("words",),
        "label": "state",
        "tokens": True,
        "vector_size": 12,
    }
    return DataConfig(format="table", **settings | changes)


def tag_data(folder, **changes):
    """Four sentences with tags of words."""
    sentences = [
        "Dogs NOUN\nbark VERB\nloudly ADV",
        "Dogs NOUN\nsleep VERB",
        "Hi INTJ",
        "Old ADJ\ndogs NOUN\nsleep VERB\n. PUNCT",
    ]
    settings = {
        "train": written(folder / "tags" / "train.txt", *(f"{s}\n" for s in sentences)),
        "dev": written(folder / "tags" / "dev.txt", *(f"{s}\n" for s in sentences[1:])),
        "vector_size": 12,
    }
    return DataConfig(format="tagging", **settings | changes)


DATA = {"pair": pair_data, "classify": class_data, "tag": tag_data}


# ------------------------------------------------------------------ SST and its trees

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
# the trees of all sentences, also of the neutral ones; one with two roots, one that is not projective
SST_TREES = {
    "train": [
        (("Not", "much", "fun"), (3, 3, 0)),
        (("It", "is", "a", "film"), (4, 4, 4, 0)),
        (("Good", "-LRB-", "3\u00a01\\/2", "of", "5", "-RRB-"), (0, 4, 1, 0, 3, 4)),
        (("Superb",), (0,)),
    ],
    "dev": [(("No", "fun"), (2, 0)), (("Hm",), (0,)), (("Much", "fun"), (0, 1))],
    "test": [(("A", "film"), (2, 0))],
}


def sst_data(folder, **changes):
    for split, lines in SST.items():
        written(folder / "sst" / f"{split}.txt", *lines)
    settings = {"path": str(folder / "sst"), "null": False, "vector_size": 12}
    return DataConfig(format="sst", **settings | changes)


def written_trees(folder, **changes):
    """CoNLL-U files of the trees above, or of others for some splits."""
    folder = folder / "trees"
    folder.mkdir(exist_ok=True)
    for split, trees in (SST_TREES | changes).items():
        write_conllu(folder / f"{split}.conllu", [Sentence(words, heads) for words, heads in trees])
    return str(folder / "{split}.conllu")


MULTINLI = {
    "train": [
        "neutral\tA dog barks .\tIt is big .\tfiction",
        "entailment\tA dog barks .\tA dog .\tfiction",
        "contradiction\tNobody runs .\tHe runs .\ttravel",
    ],
    "dev_matched": ["neutral\tA cat .\tIt barks .\tfiction"],
    "dev_mismatched": ["neutral\tIt is .\tHe is .\tverbatim", "entailment\tIt .\tIt .\tverbatim"],
}


def multinli_data(folder, *splits, **changes):
    """MultiNLI as tables, all splits or some."""
    for split in splits or MULTINLI:
        written(folder / "multinli" / f"{split}.tsv", *MULTINLI[split])
    path = str(folder / "multinli")
    return DataConfig(format="multinli", path=path, vector_size=4, **changes)
