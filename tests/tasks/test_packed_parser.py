"""A parser in one file: the same trees as its run's, no files beside it, and what it says of itself."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy
import pytest
from commands import Output, fail
from treebank_runs import train, write_treebanks

import treelax
from treelax.__main__ import main
from treelax.errors import CheckpointError, InputError

EXAMPLE = Path(__file__).parents[2] / "examples" / "pack_parser.py"
TEXTS = ["the cats see small dogs .", "old cats hear frogs ."]
WORDS = ["the", "cats", "dogs", "see", "hear", "frogs", "."]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A run with word vectors, the vectors, and the run packed by the example."""
    folder = tmp_path_factory.mktemp("packed")
    write_treebanks(folder)
    (folder / "test.conllu").write_text((folder / "dev.conllu").read_text())
    vectors, out = folder / "vectors.npz", folder / "tiny.safetensors"
    numbers = numpy.random.default_rng(0).normal(size=(len(WORDS), 30)).astype("float16")
    numpy.savez(vectors, words="\n".join(WORDS), vec=numbers)
    assert train(folder, "--vectors", str(vectors), "--test", str(folder / "test.conllu")) == 0
    spec = spec_from_file_location("pack_parser", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.pack(str(folder / "run"), str(out), [str(vectors)], {"treebank": "tiny"})
    return folder / "run", vectors, out


def test_it_parses_as_its_run_does(made: tuple[Path, Path, Path]) -> None:
    run, vectors, packed = made
    expected = treelax.load(run, vectors=[vectors]).parse(TEXTS)  # "frogs" is new
    for own, other in zip(treelax.load(packed).parse(TEXTS), expected, strict=True):
        assert (own.heads, own.relations) == (other.heads, other.relations)
        scores, right = own.scores[0][:, 1:], other.scores[0][:, 1:]
        # 8 bits a number: close, and not the same
        assert 0 < (scores - right).abs().max() < 0.05 * right.abs().max()


def test_it_says_what_it_is(made: tuple[Path, Path, Path]) -> None:
    about = treelax.load(made[2]).about
    assert about["treebank"] == "tiny"
    assert about["scores"]["test"]["las"] > 90
    assert treelax.load(made[0]).about is None


def test_what_is_refused(made: tuple[Path, Path, Path], tmp_path: Path, capsys: Output) -> None:
    run, vectors, packed = made
    with pytest.raises(InputError, match="has its word vectors with it; expected none"):
        treelax.load(packed, vectors=[vectors])
    assert "which has no data; expected --data FILE" in fail(capsys, "eval", packed)
    with pytest.raises(InputError, match="lacks the words of its run; expected the folder"):
        treelax.load(run / "best" / "model.safetensors")
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(packed.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="cut off or damaged"):
        treelax.load(cut)


def test_words_without_vectors_are_no_news(
    made: tuple[Path, Path, Path], tmp_path: Path, capsys: Output
) -> None:
    """There is no file to look them up in."""
    file = tmp_path / "new.txt"
    file.write_text("zebras hear gnus .\n")
    assert main(["predict", str(made[2]), str(file), "--device", "cpu"]) == 0
    assert capsys.readouterr().err == ""
