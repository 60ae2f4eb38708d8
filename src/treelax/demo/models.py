"""Trained models as sources of scores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor

from treelax.data.listops import TOKEN_IDS, VOCABULARY, Expression
from treelax.data.text.records import Record
from treelax.data.text.tokenizer import words_of
from treelax.data.text.vocabulary import WordTable
from treelax.demo.messages import Answer, Defaults, SourceName
from treelax.demo.sources import RandomSource, Scored, Source, ZeroSource, counted
from treelax.errors import InputError
from treelax.tasks.listops.model import ModelConfig as ListOpsModelConfig
from treelax.tasks.text.model import ModelConfig
from treelax.tasks.text.prediction import sentences_of
from treelax.training.models import TrainedModel, is_listops, load_model
from treelax.training.pretrained import SentenceModel

__all__ = ["ListOpsSource", "SentenceSource", "load_sources"]

MOST_SEEN = 50_000  # different words before the table of a transformer is made anew
OUTSIDE = 1e4  # what an arc outside the best tree lacks when a model answers
SECOND_EXAMPLE = "a cat saw a bird"


class ListOpsSource(Source):
    """The parser of a trained ListOps tagger.

    Args:
        trained: the model, on the CPU.
        label: what it is, for people.

    Raises:
        InputError: the model has no scores, for it was trained with given trees.

    Example:
        >>> source = ListOpsSource(load_model("listops"), "ListOps")
        >>> source.scored("[MAX 2 9]", 0).words
        ('[MAX', '2', '9', ']')
    """

    example = "[MAX 2 9 [MIN 4 7 ] 0 ]"

    def __init__(self, trained: TrainedModel, label: str) -> None:
        config = trained.config.model
        if trained.model.parser is None:
            raise InputError(
                f"{trained.source}: model.trees is {config.trees!r}; expected 'latent' or 'heads', "
                "which alone have scores to show"
            )
        self.label = label
        self.defaults = _defaults(config)
        self.structure = trained.model.parser.tree.structure
        self.parser, self.composer = trained.model.parser, trained.model.composer

    @torch.no_grad()
    def scored(self, text: str, seed: int) -> Scored:
        """The tokens, also of an expression that has not come to its end, and their scores."""
        spaced = text.replace("]", " ] ").replace("[", " [").split()
        written = counted([token for token in spaced if token not in ("(", ")")])
        tokens = tuple(token.upper() for token in written)
        for place, token in enumerate(written, 1):
            if token.upper() not in TOKEN_IDS:
                raise InputError(
                    f"text, token {place}: received {_shown(token)}; expected "
                    f"{' '.join(VOCABULARY)}: this model knows ListOps only, choose other scores "
                    "for sentences"
                )
        ids = torch.tensor([[TOKEN_IDS[token] for token in tokens]])
        return Scored(tokens, self.parser.scores(ids, torch.tensor([len(tokens)]))[0].float())

    @torch.no_grad()
    def answer(self, texts: Sequence[Scored], trees: Sequence[Tensor]) -> Answer | None:
        """Valencies that the composer reads off the tree; value and gold tree of a whole expression."""
        words, tree = texts[0].words, trees[0]
        tags = self.composer(tree[None])[0].argmax(-1).tolist()
        shown = [str(tag) if tag else "" for tag in tags]
        try:
            expression = Expression(words)
        except InputError as error:
            return Answer(text=f"Not a whole expression yet: {error}", tags=shown)
        heads = tree[:, 1:].argmax(0).tolist()
        right = sum(a == b for a, b in zip(heads, expression.heads, strict=True))
        operators = sum(kind == "operator" for kind in expression.kinds)
        read = sum(
            kind == "operator" and tag == valency
            for kind, tag, valency in zip(expression.kinds, tags, expression.valencies, strict=True)
        )
        return Answer(
            text=f"Value {expression.evaluate()}. The best tree has {right} of {len(words)} heads "
            f"right; from it the model reads {read} of {operators} valencies right.",
            tags=shown,
            gold=list(expression.heads),
        )


class SentenceSource(Source):
    """The encoder of a trained sentence model.

    Args:
        model: on the CPU.
        label: what it is, for people.

    Raises:
        InputError: the model has no scores, for its trees are not latent.

    Example:
        >>> from treelax.data.text.vectors import random_vectors
        >>> from treelax.training.pretrained import SentenceSettings
        >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs", "bark"], 8), ["yes"])
        >>> source = SentenceSource(model, "praise")
        >>> scored = source.scored("Dogs bark.", 0)
        >>> source.answer([scored], [torch.eye(4).roll(1, 1)]).text  # a chain
        'yes (100 %)'
    """

    def __init__(self, model: SentenceModel, label: str) -> None:
        config, tree = model.settings.model, model.network.encoder.tree
        if tree is None:
            raise InputError(
                f"{label}: model.trees is {config.trees!r}; expected 'latent' or 'heads', which "
                "alone have scores to show"
            )
        self.label = label
        self.texts = model.settings.text
        if len(self.texts) == 2:
            self.second_example = SECOND_EXAMPLE
        self.structure = tree.structure
        self.defaults = _defaults(config)
        self.model = model
        self._seen: set[str] = set()
        # hooks, and the table of a transformer, which takes in new words, are for one at a time
        self._lock = Lock()

    @torch.no_grad()
    def scored(self, text: str, seed: int) -> Scored:
        """The words as the model cuts them, NULL in front if it has one, and their scores."""
        settings = self.model.settings
        cut = [] if text.isspace() or not text else self._cut(text)
        words = counted(cut)
        with self._lock:
            batch = sentences_of(settings, self._table(words), [words])
            scores = self.model.network.encoder.scores(batch)[0].float()
        return Scored(("NULL",) * settings.null + words, scores, settings.null)

    @torch.no_grad()
    def answer(self, texts: Sequence[Scored], trees: Sequence[Tensor]) -> Answer | None:
        """The label of a text or of two with its probability, or a tag for every word."""
        settings = self.model.settings
        layer = self.model.network.encoder.tree
        if layer is None:
            return None
        if len(texts) < settings.texts:
            return Answer(text="No label yet: this model labels two texts together.")
        words = [list(text.words[text.null :]) for text in texts]
        forced = _forcing(trees)
        with self._lock:
            hook = layer.scorer.register_forward_hook(lambda *_: forced)
            try:
                [said] = self.model.predict(
                    [words if settings.texts == 2 else words[0]], tokens=True
                )
            finally:
                hook.remove()
        if isinstance(said.label, tuple):
            tags = [""] * settings.null + list(said.label)
            return Answer(text="Tags stand below the words.", tags=tags)
        share = said.probability if isinstance(said.probability, float) else 0.0
        return Answer(text=f"{said.label} ({100 * share:.0f} %)")

    def _cut(self, text: str) -> list[str]:
        # a word may hold other white space, but no model was trained on such
        return words_of(Record((" ".join(text.split()),), None, 1, self.model.settings.tokens), 0)

    def _table(self, words: Sequence[str]) -> WordTable:
        """What gives words their ids; a transformer's forgets them before they are too many."""
        self._seen.update(words)
        if len(self._seen) > MOST_SEEN:
            self._seen = set(words)
            self.model.vectors = copy(self.model.vectors)  # tables are kept by identity
        return self.model.network.encoder.read(self.model.vectors)


def load_sources(run: str | os.PathLike[str] | None = None) -> dict[SourceName, Source]:
    """All sources of a demo, the one to begin with first.

    Args:
        run: the folder of a run or of a saved model, a file ``model.safetensors`` of ListOps, or
            "listops" or None for nothing beside the model that comes with treelax.

    Returns:
        The sources by name; "run" is among them if a run was given.

    Raises:
        InputError: there is no such run, it has no model yet, or its trees are not latent.
        CheckpointError: a file is damaged or of another version.

    Example:
        >>> list(load_sources())
        ['listops', 'zero', 'random']
    """
    sources: dict[SourceName, Source] = {}
    if run is not None and str(run) != "listops":
        sources["run"] = _run_source(Path(run))
    sources["listops"] = ListOpsSource(load_model("listops"), "ListOps model, built in")
    return sources | {"zero": ZeroSource(), "random": RandomSource()}


def _run_source(path: Path) -> Source:
    label = f"run {path.resolve().name}"
    if not path.exists():
        raise InputError(
            f"{path}: does not exist; expected the folder of a run or of a saved model, or listops"
        )
    if is_listops(path):
        return ListOpsSource(load_model(path), label)
    return SentenceSource(SentenceModel.from_pretrained(path), label)


def _defaults(config: ListOpsModelConfig | ModelConfig) -> Defaults:
    return Defaults(
        relaxation=config.relaxation,
        temperature=config.temperature,
        noise_scale=0.0 if config.noise == "none" else getattr(config, "noise_scale", 1.0),
        single_root=config.single_root,
    )


def _forcing(trees: Sequence[Tensor]) -> Tensor:
    """Scores ``(texts, n + 1, n + 1)`` whose best trees are these, padded to the longest.

    A model with another rule of roots then takes the tree that is nearest to this one.
    """
    size = max(map(len, trees))
    scores = torch.zeros(len(trees), size, size)
    for own, tree in zip(scores, trees, strict=True):
        own[: len(tree), : len(tree)] = OUTSIDE * (tree - 1)
    return scores


def _shown(word: str) -> str:
    return ascii(word if len(word) <= 20 else f"{word[:20]}...")
