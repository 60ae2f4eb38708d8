"""Trained parsers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.tokenizer import written_words
from treelax.apps.data.text.vectors import Vectors
from treelax.apps.tasks.base import Answer, Example, Examples, Prediction, Progress, Source, Text
from treelax.apps.tasks.parsing.config import FILES, ParserConfig
from treelax.apps.tasks.parsing.evaluation import ParsingFigures
from treelax.apps.tasks.parsing.lexicon import NAMES, Lexicon, as_read, encode_read, tags_of
from treelax.apps.tasks.parsing.model import ParserModel
from treelax.apps.tasks.parsing.treebank import own_examples, read_examples
from treelax.apps.tasks.sentences.inputs import text_words
from treelax.apps.tasks.sentences.origins import Origin, TrainingFile, read_origins
from treelax.apps.tasks.sentences.task import WORDS
from treelax.apps.tasks.sentences.trained import SentenceParser, Texts
from treelax.apps.tasks.sentences.transformer import COPY, with_own_copy
from treelax.apps.tasks.sentences.word_vectors import GROWING, WordVectors
from treelax.apps.training.checkpoint import load_checkpoint, restoring, save_checkpoint
from treelax.apps.training.config import flatten, from_table
from treelax.apps.training.run import Run, best_model
from treelax.errors import InputError, TreelaxError
from treelax.nn import LatentTree
from treelax.nn.modes import evaluating
from treelax.trees import constrain


class DependencyParser(SentenceParser):
    """A parser with everything it needs to parse new texts."""

    task, trees, labels = "parser", "treebank", ()
    is_tagger, keeps_heads = False, True
    cut = staticmethod(written_words)
    sample = ("The old cat watched a small bird .",)

    def __init__(
        self,
        model: ParserModel,
        lexicon: Lexicon,
        config: ParserConfig,
        name: str,
        *,
        origins: Mapping[str, Origin] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.lexicon, self.config, self.name = model, lexicon, config, name
        self.tree: LatentTree = model.tree
        self.about, self.origins = about, origins or {}
        self.transformer = model.words.transformer
        self.most_arcs = model.most_arcs
        self.takes_vectors = lexicon.vectors is not None and about is None
        if lexicon.vectors is not None and model.words.given is not None and about is None:
            names = [PurePath(file).name for file in config.data.vector_files]
            self.word_vectors = WordVectors(lexicon.vectors, model.words.given, names, model=name)

    def _check(self, texts: Texts, where: str) -> None:
        """Refuse a sentence that is too long for a transformer, or without the tags that are read."""
        [text] = texts
        if len(text):
            sentence = self._sentence(text, where)
            if self.model.words.subwords is not None:
                self.model.words.subwords.check_length(as_read(sentence, self.lexicon), where)

    def _sentence(self, text: Text, where: str = "text") -> Sentence:
        sentence = text if isinstance(text, Sentence) else Sentence(tuple(text))
        tags = self.config.data.tags
        if tags != "none" and set(tags_of(sentence, tags)) == {"_"}:
            raise InputError(
                f"{where}: received words without {tags.upper()}, which {self.name} reads; expected "
                "a CoNLL-U file with them"
            )
        return sentence

    @torch.no_grad()
    def _predict(
        self, examples: list[Texts], soft: bool = False, scores: bool = False, keep: bool = False
    ) -> list[Prediction]:
        """``keep`` keeps the heads of sentences, -1 where unknown, and their labels."""
        sentences = [self._sentence(text) for (text,) in examples]
        with evaluating(self.model):
            vertices, lengths = self._vertices(sentences)
            trees = self.model.trees(vertices, lengths)
            structure, known = self.tree.structure, torch.zeros((), device=self._device)
            if keep:
                known = constrain(heads=self._known(sentences)).to(trees.scores)
                trees = structure(trees.scores + known, lengths, validate_args=True)
            best = trees.mode
            if soft:
                best = structure.argmax(trees.marginals + known, lengths, validate=False)
            heads = best[..., 1:].argmax(-2)
            relations = self._relations(sentences, vertices, heads, keep=keep)
        matrices = trees.scores.float().cpu() if scores else None
        return [
            Prediction(
                (sentence.words,),
                heads=(tuple(row[:n]),),
                scores=None if matrices is None else (matrices[i, : n + 1, : n + 1].clone(),),
                relations=(labels,),
            )
            for i, (sentence, row, labels) in enumerate(
                zip(sentences, heads.tolist(), relations, strict=True)
            )
            for n in [len(sentence)]
        ]

    def _vertices(self, sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        """Vectors of the root and the words of some sentences, and their lengths."""
        with GROWING:  # the table of sub-words
            tags, subwords = self.config.data.tags, self.model.words.subwords
            forms, words = encode_read(sentences, self.lexicon, tags, subwords)
        places = torch.arange(len(sentences), device=self._device)
        batch = words.to(self._device).batch(places, max(map(len, sentences)))
        return self.model.vertices(batch, forms.to(self._device)), batch.lengths

    def _relations(
        self, sentences: Sequence[Sentence], vertices: Tensor, heads: Tensor, *, keep: bool = False
    ) -> list[tuple[str, ...]]:
        """The labels of arcs; with ``keep``, those that are given with a head."""
        rows = self.model.label_scores(vertices, heads).argmax(-1).tolist()
        relations = []
        for sentence, row in zip(sentences, rows, strict=True):
            labels = [self.lexicon.labels[label] for label in row[: len(sentence)]]
            if keep and sentence.heads and sentence.labels:
                pairs = enumerate(zip(sentence.heads, sentence.labels, strict=True))
                for m, label in ((m, label) for m, (head, label) in pairs if head >= 0):
                    labels[m] = labels[m] if label == "_" else label
            relations.append(tuple(labels))
        return relations

    def _known(self, sentences: Sequence[Sentence]) -> Tensor:
        """The heads that are given, -1 for others."""
        heads = [torch.tensor(s.heads or (-1,) * len(s)) for s in sentences]
        return pad_sequence(heads, batch_first=True, padding_value=-1).to(self._device)

    def read(self, source: Source) -> Examples:
        """The examples that a user names."""
        return read_examples(self.config, self.tree.structure, source)

    def own_examples(self, split: str, *, limit: int | None = None) -> Examples:
        """The sentences of a split of its run."""
        if self.about is not None:
            raise InputError(
                f"{self.name}: is a parser in one file, which has no data; expected --data FILE"
            )
        return own_examples(self.config, self.origins, split, limit=limit)

    def _has_vector(self, word: str) -> bool:
        return bool(self.lexicon.vector_row(self.lexicon.usual(word)))

    def training_files(self) -> Iterable[TrainingFile]:
        """The files that its config names."""
        return self.config.data.training_files

    def evaluate(
        self, examples: Sequence[Example], *, progress: Progress | None = None
    ) -> ParsingFigures:
        """Compare heads and labels with those of a treebank."""
        # a text that was cut anew has the treebank's sentence beside it
        gold, done = [example.block or example.sentences[0] for example in examples], 0
        for sentence in gold:
            if sentence.heads is None or sentence.labels is None:
                raise InputError(
                    f"line {sentence.line}: received a sentence without heads and labels; expected a "
                    "treebank in CoNLL-U"
                )
        parses = []
        for prediction in self.stream(example.texts[0] for example in examples):
            assert prediction.heads is not None
            assert prediction.relations is not None
            parses.append((prediction.words[0], prediction.heads[0], prediction.relations[0]))
            done += len(prediction.words[0])
            if progress is not None:
                progress(done)
        return ParsingFigures.of(gold, parses)

    def save(self, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        """Save the parser as one small file, with all words looked up so far.

        Args:
            path: the file, which `treelax.load` loads.
            about: what to say of it, as JSON has it; see `about`.
        """
        if self.config.model.pretrained is not None:
            raise InputError(
                f"{self.name}: has a transformer, which one small file cannot hold; expected a parser "
                "without: pass on the folder of the run"
            )
        save_packed(Path(path), self.model, self.lexicon, self.config, about, kind=self.task)

    @torch.no_grad()
    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer | None:
        """The labels of the arcs of a tree."""
        sentences = [Sentence(tuple(texts[0]))]
        heads = trees[0][:, 1:].argmax(0)[None].to(self._device)
        with evaluating(self.model):
            [labels] = self._relations(sentences, self._vertices(sentences)[0], heads)
        return Answer("The label of each word's arc stands below it.", list(labels))

    @torch.no_grad()
    def best_trees(
        self, text: Text, prediction: Prediction, count: int, *, keep: bool = False
    ) -> list[Prediction]:
        """The most probable trees of a text, fewer if there are not as many.

        ``prediction`` is that of `stream` for the text, with scores and the same ``keep``.
        """
        sentence = self._sentence(text_words(text, "text", True))
        assert prediction.scores is not None
        best = self.tree.structure(prediction.scores[0]).top_k(count)
        heads = best.trees[..., 1:].argmax(-2)
        with evaluating(self.model):
            vertices = self._vertices([sentence])[0].expand(count, -1, -1)
            given = ([sentence] * count, vertices, heads.to(self._device))
            relations = self._relations(*given, keep=keep)
        return [
            replace(prediction, heads=(tuple(row),), relations=(labels,), log_prob=log_prob)
            for row, labels, log_prob in zip(
                heads.tolist(), relations, best.log_probs.tolist(), strict=True
            )
            if log_prob != -math.inf
        ]

    @property
    def _device(self) -> torch.device:
        return self.model.root.vector.device


def load(
    path: Path,
    *,
    name: str,
    device: str | torch.device = "cpu",
    vectors: Sequence[Path] | None = None,
) -> DependencyParser:
    """The trained parser in a run folder or in one file."""
    origins, about = {}, None
    if path.is_file():
        model, lexicon, config, about = load_packed(path, kind=DependencyParser.task)
    else:
        file, origins = best_model(path), read_origins(path)
        saved = load_checkpoint(file, kind=DependencyParser.task)
        lexicon, config = Lexicon.load(path / WORDS), Run.open(path).config(ParserConfig)
        with restoring(file, keep=TreelaxError if (path / COPY).exists() else ()):
            # files may have moved since, which the run's config records
            trained = from_table(ParserConfig, saved.state.get("config", {}), "config")
            model = ParserModel(with_own_copy(trained.model, path), lexicon)
            model.load_state_dict(saved.tensors)
    model.eval().to(device)
    parser = DependencyParser(model, lexicon, config, name, origins=origins, about=about)
    if parser.word_vectors is not None:
        parser.word_vectors.use_files(vectors)
    elif vectors:
        has = "learned its word vectors from random ones"
        if about is not None:
            has = "has its word vectors with it"
        raise InputError(f"vectors: received {vectors[0]}, and {name} {has}; expected none")
    return parser


LARGEST = 127  # of 8 bits
SCALE = ".scale"
VECTORS, ROWS = "vectors", "rows"
PROJECTION = "words.projection.weight"


def save_packed(
    path: Path,
    model: ParserModel,
    lexicon: Lexicon,
    config: ParserConfig,
    about: Mapping[str, Any],
    *,
    kind: str,
) -> None:
    """Write a parser as one file."""
    weights, known = dict(model.state_dict()), dict[str, int]()
    if lexicon.vectors is not None:
        matrix, known = lexicon.vectors.matrix, lexicon.vectors.known
        projection = weights[PROJECTION].cpu()
        # a model multiplies vectors by the root of their size
        weights[VECTORS] = matrix @ projection.T * (matrix.shape[1] / len(projection)) ** 0.5
        weights[PROJECTION] = torch.eye(len(projection))
    tensors = {ROWS: torch.tensor(list(known.values()), dtype=torch.int32)}
    for name, weight in weights.items():
        tensors |= _in_8_bits(name, weight) if weight.dim() > 1 else {name: weight}
    state = {
        "config": {k: v for k, v in flatten(config).items() if k not in FILES},
        "lexicon": {name: getattr(lexicon, name) for name in NAMES},
        "known": "\n".join(known),
        "about": dict(about),
    }
    save_checkpoint(path, tensors, kind=kind, state=state)


def load_packed(
    path: Path, *, kind: str
) -> tuple[ParserModel, Lexicon, ParserConfig, Mapping[str, Any]]:
    """Read what `save_packed` wrote."""
    saved = load_checkpoint(path, kind=kind)
    if "about" not in saved.state:
        raise InputError(f"{path}: lacks the words of its run; expected the folder of the run")
    with restoring(path):
        tensors = {name: t for name, t in saved.tensors.items() if not name.endswith(SCALE)}
        for name in [name for name in saved.tensors if name + SCALE in saved.tensors]:
            tensors[name] = tensors[name] * saved.tensors[name + SCALE]
        rows, matrix = tensors.pop(ROWS).tolist(), tensors.pop(VECTORS, None)
        known = dict(zip(saved.state["known"].split("\n"), rows, strict=False))
        vectors = None if matrix is None else Vectors(matrix, known)
        names = {name: tuple(values) for name, values in saved.state["lexicon"].items()}
        lexicon = Lexicon(**names, vectors=vectors)
        config = from_table(ParserConfig, saved.state["config"], "config")
        model = ParserModel(config.model, lexicon)
        model.load_state_dict(tensors)
    return model, lexicon, config, saved.state["about"]


def _in_8_bits(name: str, weight: Tensor) -> dict[str, Tensor]:
    scale = weight.abs().flatten(0, -2).amax(0).clamp(min=1e-12) / LARGEST
    return {name: (weight / scale).round().to(torch.int8), name + SCALE: scale}
