"""Trained parsers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence, heads_tensor
from treelax.apps.data.text.tokenizer import written_words
from treelax.apps.tasks.base import (
    Answer,
    Example,
    Examples,
    Prediction,
    Progress,
    Source,
    Text,
)
from treelax.apps.tasks.parsing.config import ParserConfig
from treelax.apps.tasks.parsing.evaluation import ParsingFigures
from treelax.apps.tasks.parsing.inputs import own_examples, read_examples
from treelax.apps.tasks.parsing.lexicon import Forms, Lexicon, tags_of
from treelax.apps.tasks.parsing.model import ParserModel
from treelax.apps.tasks.parsing.packed import Packed, load_packed, save_packed
from treelax.apps.tasks.parsing.treebank import Batch, EncodedTreebank, as_read, encode_words
from treelax.apps.tasks.sentences.inputs import text_words
from treelax.apps.tasks.sentences.origins import Origin, TrainingFile, read_origins
from treelax.apps.tasks.sentences.task import WORDS
from treelax.apps.tasks.sentences.trained import GROWING, SentenceParser, Texts
from treelax.apps.tasks.sentences.trained import Batch as PredictBatch
from treelax.apps.tasks.sentences.transformer import COPY, with_own_copy
from treelax.apps.tasks.sentences.word_vectors import WordVectors
from treelax.apps.training.checkpoint import load_checkpoint, restoring
from treelax.apps.training.config import from_table
from treelax.apps.training.run import Run, best_model
from treelax.errors import InputError, TreelaxError
from treelax.nn import LatentTree
from treelax.nn.modes import evaluating
from treelax.trees import constrain


class DependencyParser(SentenceParser):
    """A parser with everything it needs to parse new texts."""

    task = "parser"
    is_tagger, keeps_heads = False, True
    cut = staticmethod(written_words)
    labels = ()
    trees = "treebank"
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
        self.about = about
        self.takes_vectors = lexicon.vectors is not None and about is None
        self.origins = origins or {}
        self.most_arcs = model.most_arcs
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

    def _alone(self) -> AbstractContextManager[Any]:
        return GROWING if self.model.words.subwords is not None else super()._alone()

    def _predictor(self, examples: Sequence[Texts], **options: Any) -> PredictBatch:
        """See `treelax.apps.tasks.base.TrainedParser.stream`; ``keep`` keeps the heads of sentences, -1
        where unknown, and their labels.
        """
        given = {i: self._sentence(text, "text") for i, (text,) in enumerate(examples) if len(text)}
        encoded, rows = self._encoded(list(given.values())), {i: row for row, i in enumerate(given)}

        def predicted(places: Sequence[int]) -> list[Prediction]:
            sentences = [given[place] for place in places]
            longest = max(map(len, sentences))
            with evaluating(self.model):
                batch = self._batch(encoded, [rows[place] for place in places], longest)
                return self._parsed(sentences, batch, **options)

        return predicted

    @torch.no_grad()
    def _parsed(
        self,
        sentences: Sequence[Sentence],
        encoded: tuple[Batch, Forms],
        soft: bool,
        scores: bool,
        keep: bool = False,
    ) -> list[Prediction]:
        batch, forms = encoded
        vertices = self.model.vertices(batch, forms)
        trees = self.model.trees(vertices, batch.lengths)
        structure, mask = self.tree.structure, torch.zeros((), device=self._device)
        if keep:
            mask = constrain(heads=self._known(sentences)).to(trees.scores)
            trees = structure(trees.scores + mask, batch.lengths, validate_args=True)
        best = trees.mode
        if soft:
            best = structure.argmax(trees.marginals + mask, batch.lengths, validate=False)
        heads = best[..., 1:].argmax(-2)
        labels = self.model.label_scores(vertices, heads).argmax(-1).tolist()
        own_scores = trees.scores.float().cpu() if scores else ()
        predictions = []
        for i, (sentence, row) in enumerate(zip(sentences, heads.tolist(), strict=True)):
            n = len(sentence)
            relations = [self.lexicon.labels[label] for label in labels[i][:n]]
            if keep:
                relations = _kept_labels(sentence, relations)
            predictions.append(
                Prediction(
                    (sentence.words,),
                    heads=(tuple(row[:n]),),
                    scores=(own_scores[i][: n + 1, : n + 1].clone(),) if scores else None,
                    relations=(tuple(relations),),
                )
            )
        return predictions

    def _encoded(self, sentences: Sequence[Sentence]) -> tuple[EncodedTreebank, Forms]:
        given = (self.lexicon, self.config.data.tags, self.model.words.subwords)
        with GROWING:  # the table of sub-words
            forms, words = encode_words(sentences, *given)
        return words.to(self._device), forms.to(self._device)

    def _batch(
        self, encoded: tuple[EncodedTreebank, Forms], places: Sequence[int], longest: int
    ) -> tuple[Batch, Forms]:
        """Some of the sentences, padded."""
        words, forms = encoded
        return words.batch(torch.tensor(places, device=self._device), longest), forms

    def _known(self, sentences: Sequence[Sentence]) -> Tensor:
        """The heads that are given, -1 for others."""
        filled = [s if s.heads else replace(s, heads=(-1,) * len(s), lines=()) for s in sentences]
        return heads_tensor(filled)[0].to(self._device)

    def _sentence(self, text: Text, where: str) -> Sentence:
        sentence = text if isinstance(text, Sentence) else Sentence(tuple(text))
        tags = self.config.data.tags
        if tags != "none" and set(tags_of(sentence, tags)) == {"_"}:
            raise InputError(
                f"{where}: received words without {tags.upper()}, which {self.name} reads; expected "
                "a CoNLL-U file with them"
            )
        return sentence

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
        packed = Packed(self.model, self.lexicon, self.config, about)
        save_packed(Path(path), packed, kind=self.task)

    @torch.no_grad()
    def arc_scores(self, text: Text) -> Tensor:
        """The scores of the arcs of one text; of labelled trees, summed over labels."""
        sentence = self._sentence(text_words(text, "text", True), "text")
        with evaluating(self.model):
            lengths = torch.tensor([len(sentence)], device=self._device)
            return self.model.trees(self._vertices(sentence), lengths).scores[0].float().cpu()

    @torch.no_grad()
    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer | None:
        """The labels of the arcs of a tree."""
        heads = trees[0][:, 1:].argmax(0)[None].to(self._device)
        with evaluating(self.model):
            vertices = self._vertices(Sentence(tuple(texts[0])))
            scores = self.model.label_scores(vertices, heads)
        labels = [self.lexicon.labels[label] for label in scores[0].argmax(-1).tolist()]
        return Answer("The label of each word's arc stands below it.", labels)

    @torch.no_grad()
    def best_trees(
        self, text: Text, prediction: Prediction, count: int, *, keep: bool = False
    ) -> list[Prediction]:
        """The most probable trees of a text, fewer if there are not as many.

        ``prediction`` is that of `stream` for the text, with scores and the same ``keep``.
        """
        sentence = self._sentence(text_words(text, "text", True), "text")
        assert prediction.scores is not None
        best = self.tree.structure(prediction.scores[0]).top_k(count)
        heads = best.trees[..., 1:].argmax(-2)
        with evaluating(self.model):
            vertices = self._vertices(sentence).expand(count, -1, -1)
            labels = self.model.label_scores(vertices, heads.to(self._device)).argmax(-1)
        trees = []
        for row, numbers, log_prob in zip(
            heads.tolist(), labels.tolist(), best.log_probs.tolist(), strict=True
        ):
            relations = [self.lexicon.labels[label] for label in numbers]
            relations = _kept_labels(sentence, relations) if keep else relations
            more = {"relations": (tuple(relations),), "log_prob": log_prob}
            trees.append(replace(prediction, heads=(tuple(row),), **more))
        return [tree for tree in trees if tree.log_prob != -math.inf]

    def _vertices(self, sentence: Sentence) -> Tensor:
        """Vectors of the root and the words of a sentence."""
        batch, forms = self._batch(self._encoded([sentence]), [0], len(sentence))
        return self.model.vertices(batch, forms)

    @property
    def _device(self) -> torch.device:
        return self.model.root.vector.device


def _kept_labels(sentence: Sentence, labels: Sequence[str]) -> list[str]:
    """The labels found, but those that are given with a head."""
    n = len(sentence)
    given = zip(sentence.heads or (-1,) * n, sentence.labels or ("_",) * n, labels, strict=True)
    return [predicted if head < 0 or label == "_" else label for head, label, predicted in given]


def load(
    path: Path,
    *,
    name: str,
    device: str | torch.device = "cpu",
    vectors: Sequence[Path] | None = None,
) -> DependencyParser:
    """The trained parser in a run folder or in one file."""
    if path.is_file():
        packed = load_packed(path, kind=DependencyParser.task)
        if vectors:
            raise InputError(
                f"vectors: received {vectors[0]}, and {name} has its word vectors with it; "
                "expected none"
            )
        packed.model.eval().to(device)
        return DependencyParser(
            packed.model, packed.lexicon, packed.config, name, about=packed.about
        )
    file = best_model(path)
    saved = load_checkpoint(file, kind=DependencyParser.task)
    lexicon = Lexicon.load(path / WORDS)
    of_transformer = TreelaxError if (path / COPY).exists() else ()
    with restoring(file, keep=of_transformer):
        # files may have moved since, which the run's config records
        trained = from_table(ParserConfig, saved.state.get("config", {}), "config")
        model = ParserModel(with_own_copy(trained.model, path), lexicon)
        model.load_state_dict(saved.tensors)
    config = Run.open(path).config(ParserConfig)
    parser = DependencyParser(
        model.eval().to(device), lexicon, config, name, origins=read_origins(path)
    )
    if parser.word_vectors is not None:
        parser.word_vectors.use_files(vectors)
    elif vectors:
        raise InputError(
            f"vectors: received {vectors[0]}, and {name} learned its word vectors from random ones; "
            "expected none"
        )
    return parser
