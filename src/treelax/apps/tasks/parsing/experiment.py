"""Model, data and loss of a parser, for the training loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.projectivity import nearest_projective
from treelax.apps.data.tensor_files import fingerprint
from treelax.apps.data.text.vectors import load_joined
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.parsing.config import FILES, ModelConfig, ParserConfig
from treelax.apps.tasks.parsing.decoders import make_decoder
from treelax.apps.tasks.parsing.lexicon import Lexicon, universal
from treelax.apps.tasks.parsing.model import ParserModel
from treelax.apps.tasks.parsing.treebank import as_read, encode, encode_words, read_treebank
from treelax.apps.tasks.parsing.unlabelled import choose_labelled, load_unlabelled, mixed_loss
from treelax.apps.tasks.sentences.experiment import SentenceExperiment, Shape
from treelax.apps.tasks.sentences.origins import SPLITS
from treelax.apps.tasks.sentences.subwords import SubwordTable
from treelax.apps.tasks.sentences.word_vectors import coverage_notes
from treelax.apps.tasks.settings import for_batches
from treelax.errors import InputError, counted, short
from treelax.trees import is_projective


@dataclass(frozen=True)
class Treebanks:
    """The sentences of a config, and messages about them."""

    splits: dict[str, list[Sentence]]  # those of training as they are trained on
    unlabelled: list[Sentence]  # to train on without their trees
    lexicon: Lexicon
    vocabulary: Vocabulary  # the words of all splits
    messages: tuple[str, ...]

    def save_words(self, file: Path) -> None:
        self.lexicon.save(file)


def load_treebanks(config: ParserConfig, progress: Callable[[int, str], None]) -> Treebanks:
    """Read and check the files of a config."""
    data, splits = config.data, dict[str, list[Sentence]]()
    for split in SPLITS:
        if (path := getattr(data, split)) is None:
            if split != "test":
                raise InputError(f"data.{split} is none; expected a file: give --{split} FILE")
            continue
        sentences = splits[split] = []
        # of the training sentences long ones are left out below
        read = read_treebank(
            path, single_root=config.model.single_root, any_length=split == "train"
        )
        for sentence in read:
            sentences.append(sentence)
            progress(len(sentences), split)
    labelled, rest = choose_labelled(splits["train"], data)
    unlabelled, more_notes = load_unlabelled(config, rest)
    splits["train"], notes = _to_train(labelled, config)
    if rest:
        part = f"{len(labelled):,} of {counted(len(labelled) + len(rest), 'sentence')}"
        notes.insert(0, f"train: the trees of {part} are used")
    notes += more_notes
    vocabulary = Vocabulary()
    for sentences in (*splits.values(), unlabelled):
        for sentence in sentences:
            vocabulary.ids(sentence.words)
    vectors = None
    if data.vector_files:
        vectors = load_joined(data.vector_files, vocabulary, seed=data.seed)
        notes += coverage_notes(sum(word in vectors for word in vocabulary), len(vocabulary))
    known = [*splits["train"], *unlabelled]
    lexicon = Lexicon.of(known, tags=data.tags, min_count=data.min_count, vectors=vectors)
    if data.tags != "none" and set(lexicon.tags) <= {"_"}:
        raise InputError(f"data.tags is {data.tags} and {data.train} has none there; expected none")
    known_labels = set(map(universal, lexicon.labels))  # figures are without subtypes
    for split in splits:
        new = [label for sentence in splits[split] for label in sentence.labels or ()]
        new = [label for label in new if universal(label) not in known_labels]
        if new:
            note = f"{counted(len(new), 'word')} with a label that training never saw, counted as wrong"
            notes.append(f"{split}: {note} ({', '.join(sorted(set(new)))})")
    return Treebanks(splits, unlabelled, lexicon, vocabulary, tuple(notes))


def _to_train(
    sentences: Sequence[Sentence], config: ParserConfig
) -> tuple[list[Sentence], list[str]]:
    """Training sentences without the long ones, and trees that the structure has."""
    longest, notes = config.data.max_length, []
    chosen = [sentence for sentence in sentences if len(sentence) <= longest]
    if not chosen:
        raise InputError(
            f"{config.data.train}: all sentences have more than data.max_length={longest} words; "
            "expected shorter ones, or --set data.max_length=N"
        )
    if left := len(sentences) - len(chosen):
        note = f"{counted(left, 'sentence')} of more than {longest} words left out"
        notes.append(f"train: {note}; --set data.max_length=N keeps more")
    if config.model.structure == "projective":
        projective = [_projective(sentence, config.model.single_root) for sentence in chosen]
        if changed := sum(a is not b for a, b in zip(projective, chosen, strict=True)):
            note = f"{counted(changed, 'tree')} with crossing arcs, in place of which the nearest"
            notes.append(f"train: {note} projective ones are learned")
        chosen = projective
    return chosen, notes


def _projective(sentence: Sentence, single_root: bool) -> Sentence:
    assert sentence.heads is not None
    if bool(is_projective(torch.tensor(sentence.heads))):
        return sentence
    return replace(sentence, heads=nearest_projective(sentence.heads, single_root=single_root))


class ParserExperiment(SentenceExperiment):
    """Model, data and loss of one run."""

    task = "parser"
    files, counted = FILES, 3

    def __init__(
        self,
        config: ParserConfig,
        data: Treebanks,
        device: torch.device,
        *,
        model: ModelConfig | None = None,
    ) -> None:
        super().__init__(config, data, device)
        self.labels = data.lexicon.labels
        lexicon, words, tags = data.lexicon, data.vocabulary, config.data.tags
        self.model: ParserModel = self.make_model(self._network, model or config.model)
        self.transformer, subwords = self.model.words.transformer, self.model.words.subwords
        if subwords is not None:
            self._check_lengths(subwords)
        self.forms = lexicon.forms(list(words), subwords).to(device)
        self.universal = lexicon.universal.to(device)
        training, unseen = data.splits["train"], data.splits["dev"]
        some = training + data.unlabelled  # the labelled sentences, then the others
        everything = encode(some, lexicon, tags, words.ids(w for s in some for w in s.words))
        dev_forms, read = encode_words(unseen, lexicon, tags, subwords)
        dev = encode(unseen, lexicon, tags, read.columns[:, 0].tolist())
        self.dev_forms = dev_forms.to(device)
        self.labelled, self.dev_data = len(training), dev.to(device)
        self.epoch_size = max(self.labelled, len(data.unlabelled))
        self.everything = everything.to(device)
        self.sizes = self.model.words.sizes(self.everything, self.forms).cpu()
        estimator = config.unlabelled.make_estimator()
        self.estimator = for_batches(
            estimator, round(2 * config.train.batch_size * float(everything.lengths.float().mean()))
        )
        self.mixed = self.begin(1)
        dev_sizes = self.model.words.sizes(self.dev_data, self.dev_forms).cpu()
        self.dev = self.evaluation_batches(dev_sizes, self.model.most_arcs)

    def _network(self, settings: ModelConfig) -> ParserModel:
        lexicon, data = self.data.lexicon, self.data
        model = ParserModel(settings, lexicon)
        if data.unlabelled:
            table = model.words.learned.weight
            sizes = (*table.shape, model.encoder.output_size)
            model.decoder = make_decoder(self.config.unlabelled, *sizes)
            # words that no tree has start from what the encoder sees of dropped ones
            seen = lexicon.forms([word for s in data.splits["train"] for word in s.words])
            table.data[~torch.isin(torch.arange(len(table)), seen.learned)] = 0
        return model

    def _check_lengths(self, subwords: SubwordTable) -> None:
        """Refuse sentences that are too long for a transformer, before training begins."""
        for split, sentences in self.data.splits.items():
            for sentence in sentences:
                read = sentence.words if split == "train" else as_read(sentence, self.data.lexicon)
                file = getattr(self.config.data, split)
                subwords.check_length(read, f"{file}, line {sentence.line}")
        for sentence in self.data.unlabelled:
            subwords.check_length(sentence.words, f"unlabelled: {short(sentence.text)}")

    def groups(self) -> list[dict[str, Any]]:
        """As of all tasks, with Adam's decay rates."""
        betas = (0.9, self.config.train.second_moment)
        return [group | {"betas": betas} for group in super().groups()]

    def begin(self, epoch: int) -> bool:
        """Take unlabelled sentences into batches after the first epochs; returns whether they are."""
        self.mixed = bool(self.data.unlabelled) and epoch > self.config.unlabelled.warm_up
        return self.mixed

    def fingerprint(self) -> str:
        lexicon = self.data.lexicon
        used = self.everything.columns[:, 0].unique()
        words = [self.data.vocabulary.word(number) for number in used.tolist()]
        words += [word for sentence in self.data.splits["dev"] for word in sentence.words]
        facts = [words, lexicon.words, lexicon.characters, lexicon.tags, lexicon.labels]
        tensors = [
            part
            for data in (self.everything, self.dev_data)
            for part in (data.columns, data.offsets)
        ]
        if lexicon.vectors is not None:
            for rows in (self.forms.vectors[used], self.dev_forms.vectors):
                tensors.append(lexicon.vectors.matrix[rows.cpu()])
        return fingerprint(facts, tensors)

    def draw(self, generator: torch.Generator) -> Tensor:
        """Labelled sentences, and as many others beside them, by length, for little padding."""
        drawn = self.draw_some(self.sizes[: self.labelled], generator)
        if not self.mixed:
            return drawn
        both = [drawn, self.labelled + self.draw_some(self.sizes[self.labelled :], generator)]
        both = [rows[self.sizes[rows].amax((1, 2)).argsort(stable=True)] for rows in both]
        return torch.cat(both, 1)[torch.randperm(self.updates, generator=generator)]

    def loss(self, shape: Shape, indices: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of a batch per word."""
        batch = self.everything.batch(indices, *shape)
        if self.model.decoder is None:
            losses = self.model.loss(batch, self.forms)
        else:
            labelled = indices < self.labelled
            settings = (self.config.unlabelled, self.estimator)
            losses = mixed_loss(self.model, *settings, batch, self.forms, labelled, generator)
        return losses.sum() / batch.lengths.sum()

    def loss_weight(self, shape: Shape, indices: Tensor) -> Tensor:
        """The number of words of a batch."""
        return (self.everything.offsets[indices + 1] - self.everything.offsets[indices]).sum()

    def count_batch(self, data: Any, shape: Shape, indices: Tensor, **options: Any) -> list[Tensor]:
        """Right heads, right heads with the universal part of their labels right, and words."""
        batch = data.batch(indices, *shape)
        vertices = self.model.vertices(batch, self.dev_forms)
        heads = self.model.trees(vertices, batch.lengths).mode[..., 1:].argmax(-2)
        labels = self.universal[self.model.label_scores(vertices, heads).argmax(-1)]
        inside = torch.arange(shape[0], device=self.device) < batch.lengths[:, None]
        attached = (heads == batch.heads) & inside
        return [attached.sum(), (attached & (labels == batch.universal)).sum(), inside.sum()]

    @staticmethod
    def summary(counts: Tensor) -> dict[str, float]:
        """UAS and LAS in percent; LAS, as ``score``, chooses the best model."""
        attached, right, words = counts.tolist()
        las = 100 * right / max(words, 1)
        return {"score": las, "uas": 100 * attached / max(words, 1), "las": las}
