"""Parse texts with a spaCy pipeline and write the trees that ``--set data.trees`` reads.

    python examples/spacy_trees.py en_core_web_sm --format sst --from SST --out trees
    treelax train sst --preset sst-given --from SST --set data.trees=trees/{split}.conllu

Texts are read and split into words as ``treelax train`` does, and the parser does not split them
again. Crossing arcs are removed, since latent trees have none; ``--crossing`` keeps them. If the
parser finds several sentences in a text, each has its own root; ``--single-root`` attaches the other
roots to the first. Existing trees are replaced only with ``--force``, input files never.

Needs ``pip install ".[data,train]" spacy`` and a pipeline with a parser.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Any, get_args

from treelax.apps.cli.console import console
from treelax.apps.cli.progress import progress
from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.data.projectivity import nearest_projective
from treelax.apps.data.text.encoding import EncodedText
from treelax.apps.tasks.sentences.transformer import plain_word
from treelax.apps.tasks.text.config import DataConfig, Format
from treelax.apps.tasks.text.data import encoded_splits
from treelax.apps.tasks.text.sources import text_sources
from treelax.errors import BackendError, InputError, TreelaxError, counted

NAME = Path(__file__).name
# components that trees do not need
NOT_NEEDED = ("ner", "lemmatizer", "senter", "textcat", "textcat_multilabel", "entity_linker")

MakeDoc = Callable[[list[str]], Any]


@dataclass
class Counts:
    """How many texts, and how many of their trees were unusual."""

    texts: int = 0
    crossing: int = 0
    several_roots: int = 0


def load_pipeline(name: str) -> tuple[Any, MakeDoc]:
    """A spaCy pipeline, by name or folder, and a function that makes its documents from words."""
    try:
        import spacy
        from spacy.tokens import Doc
    except ImportError as error:
        raise BackendError("spaCy is not installed: pip install spacy") from error
    try:
        pipeline = spacy.load(name, exclude=list(NOT_NEEDED))
    except OSError as error:
        raise InputError(
            f"pipeline is {name!r}; expected the name of an installed spaCy pipeline or a folder: run "
            "python -m spacy download en_core_web_sm, for example"
        ) from error
    return pipeline, lambda words: Doc(pipeline.vocab, words=words)


def sentences(data: EncodedText) -> Iterator[list[str]]:
    """The words of every text of a split, in order; both texts of a pair, first and second."""
    for example in range(len(data)):
        for which in range(data.texts):
            yield data.words(example, which)


def parsed(
    pipeline: Any,
    make_doc: MakeDoc,
    texts: Iterable[Sequence[str]],
    counts: Counts,
    *,
    processes: int = 1,
    crossing: bool = False,
    single_root: bool = False,
) -> Iterator[Sentence]:
    """Parse texts, given as words, in order; updates ``counts``."""
    for_pipeline, texts = tee(texts)
    # parsers expect ordinary brackets and quotes, not the Penn Treebank's
    docs = (make_doc([plain_word(word) for word in words]) for words in for_pipeline)
    results = pipeline.pipe(docs, batch_size=256, n_process=processes)
    for words, doc in zip(texts, results, strict=True):
        where = f"text {counts.texts + 1}, {' '.join(words)[:60]!r}"
        if len(doc) != len(words):
            raise InputError(
                f"{where}: the pipeline returned {counted(len(doc), 'token')}; expected {len(words)}: "
                "remove components that merge or split tokens"
            )
        if not doc.has_annotation("DEP"):
            raise InputError(
                f"{where}: the pipeline returned no tree; expected a pipeline with a parser, such as "
                "en_core_web_sm"
            )
        heads = [0 if token.head.i == token.i else token.head.i + 1 for token in doc]
        roots = [word for word, head in enumerate(heads, 1) if head == 0]
        if single_root:
            for root in roots[1:]:
                heads[root - 1] = roots[0]
        projective = nearest_projective(heads)
        counts.texts += 1
        counts.crossing += list(projective) != heads
        counts.several_roots += len(roots) > 1
        yield Sentence(
            tuple(words),
            tuple(heads) if crossing else projective,
            tags=tuple(token.pos_ or "_" for token in doc),
            labels=tuple(token.dep_ or "_" for token in doc),
        )


def check_files(config: DataConfig, out: Path, force: bool) -> None:
    """Refuse to overwrite existing trees without ``--force``, and input files in any case."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; expected a folder: give another --out")
    sources = text_sources(config)
    read = [file for source in sources.values() for file in source.files]
    for file in (tree_file(out, name) for name in sources):
        if not file.exists():
            continue
        if any(os.path.samefile(file, other) for other in read):
            raise InputError(
                f"{file} is an input file; expected an output folder elsewhere: give another --out"
            )
        if not force:
            raise InputError(f"{file} exists already: give another --out, or --force to replace it")


def tree_file(out: Path, split: str) -> Path:
    return out / f"{split}.conllu"


def write_trees(
    splits: dict[str, EncodedText], out: Path, pipeline: Any, make_doc: MakeDoc, **options: Any
) -> dict[str, Counts]:
    """Parse all splits; each file is written completely or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    result = {}
    for name, data in splits.items():
        counts = result[name] = Counts()
        with progress(f"parsing {name}", len(data) * data.texts, unit="text") as bar:

            def followed(trees: Iterable[Sentence], bar: Any = bar) -> Iterator[Sentence]:
                for tree in trees:
                    yield tree
                    bar.advance()

            trees = parsed(pipeline, make_doc, sentences(data), counts, **options)
            write_conllu(tree_file(out, name), followed(trees))
    return result


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    text, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog=NAME,
        description=text,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pipeline", help="name of an installed spaCy pipeline, or its folder")
    parser.add_argument("--format", choices=get_args(Format), default="table")
    parser.add_argument("--from", dest="path", help="folder or archive of SNLI, MultiNLI or SST")
    for split in ("train", "dev", "test"):
        parser.add_argument(f"--{split}", help="file to use instead of the split in --from")
    parser.add_argument("--text", action="append", help="column of a table; twice for pairs")
    parser.add_argument("--label", default="label", help="column of a table")
    parser.add_argument(
        "--tokens",
        action="store_true",
        help="texts are already tokenised, with spaces between words",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the trees")
    parser.add_argument("--force", action="store_true", help="replace existing trees")
    parser.add_argument("--processes", type=int, default=1, help="number of spaCy processes")
    parser.add_argument("--crossing", action="store_true", help="keep crossing arcs")
    parser.add_argument("--single-root", action="store_true", help="one root per text")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    options = arguments(given)
    if options.processes < 1:
        raise InputError(f"--processes is {options.processes}; expected at least 1")
    config = DataConfig(
        format=options.format,
        path=options.path,
        train=options.train,
        dev=options.dev,
        test=options.test,
        text=tuple(options.text or ["text"]),
        label=options.label,
        classes="five",  # neutral sentences have trees too
        tokens=options.tokens,
    )
    check_files(config, options.out, options.force)
    pipeline, make_doc = load_pipeline(options.pipeline)
    with progress("reading texts", unit="record", transient=True) as bar:
        splits = encoded_splits(config, bar.update)
    how = {name: getattr(options, name) for name in ("processes", "crossing", "single_root")}
    for name, counts in write_trees(splits, options.out, pipeline, make_doc, **how).items():
        console.print(
            f"{tree_file(options.out, name)}: {counted(counts.texts, 'tree')}, {counts.crossing:,} "
            f"{'with crossing arcs' if options.crossing else 'made projective'}, "
            f"{counts.several_roots:,} with several roots{' joined' * options.single_root}"
        )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (TreelaxError, OSError) as error:
        print(f"{NAME}: error: {error}", file=sys.stderr)
        sys.exit(2)
