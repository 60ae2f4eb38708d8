"""examples/spacy_trees.py, with a stand-in for spaCy's pipeline: same calls, no model."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from treelax.apps.data.conllu import read_conllu
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import encoded_splits, load_text
from treelax.errors import BackendError, InputError

SCRIPT = Path(__file__).parents[2] / "examples" / "spacy_trees.py"
SST = {
    "train": ["(3 (2 Good) (2 (2 -LRB-) (2 (2 3\u00a01\\/2) (2 -RRB-))))", "(2 (2 A) (2 film))"],
    "dev": ["(0 (2 No) (2 (2 ``) (2 fun)))", "(4 (2 Much) (3 fun))"],
    "test": ["(3 (2 A) (3 film))"],
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("spacy_trees", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))


class Doc(list):
    """Tokens as spaCy has them: ``head`` is a token, a root's its own."""

    def __init__(self, words):
        super().__init__(SimpleNamespace(i=i, text=w, pos_="X") for i, w in enumerate(words))
        self.set_heads(range(len(words)), dep="")

    def set_heads(self, heads, dep="dep"):
        for token, head in zip(self, heads, strict=True):
            token.head, token.dep_ = self[head], dep
        return self

    def has_annotation(self, name):
        return name == "DEP" and any(token.dep_ for token in self)


class Pipeline:
    """Hangs words on heads that ``heads`` makes of their number, counted from 0 as in spaCy."""

    def __init__(self, heads):
        self.heads = heads
        self.seen = []

    def pipe(self, docs, *, batch_size, n_process):
        for doc in docs:
            self.seen.append([token.text for token in doc])
            yield self.heads(doc)


def chain(doc):
    return doc.set_heads([max(token.i - 1, 0) for token in doc])


@pytest.fixture
def sst(tmp_path):
    folder = tmp_path / "sst"
    folder.mkdir()
    for split, lines in SST.items():
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_trees_of_sst_are_ready_for_training(script, sst, tmp_path, monkeypatch, capsys):
    """And replaced only if that is asked for; an input file never is."""
    pipeline = Pipeline(chain)
    monkeypatch.setattr(script, "load_pipeline", lambda name: (pipeline, Doc))
    out = tmp_path / "new" / "trees"
    command = ["any", "--format", "sst", "--from", str(sst), "--out", str(out)]
    assert script.main(command) == 0
    printed = capsys.readouterr().out
    assert f"{out / 'train'}.conllu: 2 trees, 0 made projective, 0 with several roots" in printed
    config = DataConfig(format="sst", path=str(sst), trees=str(out / "{split}.conllu"), null=False)
    splits = load_text(config).splits
    assert splits["train"].heads.tolist() == [0, 1, 2, 3]  # without the neutral sentence
    assert splits["dev"].heads.tolist() == [0, 1, 2, 0, 1]
    # the parser reads marks as people write them, the file keeps the words of the data
    assert pipeline.seen[0] == ["Good", "(", "3\u00a01/2", ")"]
    assert pipeline.seen[2] == ["No", '"', "fun"]
    assert next(read_conllu(out / "dev.conllu")).words == ("No", "``", "fun")
    (out / "dev.conllu").write_text("mine")
    with pytest.raises(InputError, match=r"\.conllu exists already: .* --force to replace it"):
        script.main(command)
    assert (out / "dev.conllu").read_text() == "mine"
    assert script.main([*command, "--force"]) == 0
    assert next(read_conllu(out / "dev.conllu")).heads == (0, 1, 2)
    tagging = ["any", "--format", "tagging", "--train", str(out / "train.conllu")]
    other = tmp_path / "other"
    other.symlink_to(out)  # the same folder under another name
    contents = (out / "train.conllu").read_bytes()
    with pytest.raises(InputError, match=r"train\.conllu is an input file; expected"):
        script.main([*tagging, "--dev", str(out / "dev.conllu"), "--out", str(other), "--force"])
    assert (out / "train.conllu").read_bytes() == contents


def test_pairs_are_written_text_by_text(script, tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("a\tb\tlabel\ndogs bark\tcats\tno\nbirds\tbirds sing\tyes\n")
    columns = {"text": ("a", "b"), "tokens": True, "train": str(file), "dev": str(file)}
    splits = encoded_splits(DataConfig(format="table", **columns))
    counts = script.write_trees(splits, tmp_path / "trees", Pipeline(chain), Doc)
    assert counts["dev"].texts == 4
    config = DataConfig(format="table", **columns, trees=str(tmp_path / "trees" / "{split}.conllu"))
    assert load_text(config).splits["train"].heads.tolist() == [0, 1, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("heads", "options", "expected", "counts"),
    [
        ([1, 1, 1, 0], {}, (2, 0, 2, 2), (1, 0)),  # d hangs off a, across the root's arc
        ([1, 1, 1, 0], {"crossing": True}, (2, 0, 2, 1), (1, 0)),
        ([0, 0, 2, 2], {}, (0, 1, 0, 3), (0, 1)),
        ([0, 0, 2, 2], {"single_root": True}, (0, 1, 1, 3), (0, 1)),
    ],
)
def test_crossing_arcs_and_several_roots(script, heads, options, expected, counts):
    pipeline, found = Pipeline(lambda doc: doc.set_heads(heads)), script.Counts()
    (tree,) = script.parsed(pipeline, Doc, [["a", "b", "c", "d"]], found, **options)
    assert tree.heads == expected
    assert (found.crossing, found.several_roots) == counts


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (lambda doc: doc, r"text 1, 'a b': the pipeline returned no tree"),
        (lambda doc: chain(Doc(["ab"])), "returned 1 token; expected 2"),
    ],
)
def test_pipelines_that_do_not_parse_or_merge_words_are_named(script, heads, message):
    with pytest.raises(InputError, match=message):
        list(script.parsed(Pipeline(heads), Doc, [["a", "b"]], script.Counts()))


def test_an_error_leaves_older_trees_untouched(script, sst, tmp_path):
    out = tmp_path / "trees"
    out.mkdir()
    (out / "train.conllu").write_text("old")
    splits = encoded_splits(DataConfig(format="sst", path=str(sst), classes="five"))
    with pytest.raises(InputError):
        script.write_trees(splits, out, Pipeline(lambda doc: doc), Doc)
    assert [(file.name, file.read_text()) for file in out.iterdir()] == [("train.conllu", "old")]


def test_errors_are_one_line(script, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        script.main(["any"])
    assert "\nspacy_trees.py: error: " in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(BackendError, match="spaCy is not installed: pip install spacy"):
        script.load_pipeline("en_core_web_sm")
