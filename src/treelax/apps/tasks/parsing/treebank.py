"""Treebanks: read and checked, to train on, to parse or to evaluate with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.projectivity import nearest_projective
from treelax.apps.data.text.records import MAX_WORDS, CheckOptions
from treelax.apps.data.text.tokenizer import written_words
from treelax.apps.data.text.vectors import load_joined
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.base import Example, Examples, Source
from treelax.apps.tasks.parsing.config import DataConfig, ParserConfig
from treelax.apps.tasks.parsing.evaluation import characters, surface_tokens
from treelax.apps.tasks.parsing.lexicon import Lexicon, tags_of, universal
from treelax.apps.tasks.sentences.inputs import (
    ReadOptions,
    check_tree,
    is_treebank,
    treebank_examples,
)
from treelax.apps.tasks.sentences.inputs import read_examples as read_texts
from treelax.apps.tasks.sentences.origins import SPLITS, Origin, find_split
from treelax.apps.tasks.sentences.word_vectors import coverage_notes
from treelax.errors import DataError, InputError, NoTreeError, counted, short
from treelax.structures import Structure
from treelax.trees import constrain, is_projective


def read_treebank(path: str, *, single_root: bool, any_length: bool = False) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file, each with a labelled tree."""

    def example(sentence: Sentence, name: str) -> Example:
        check_labelled(sentence, name, single_root=single_root)
        return _example(sentence)

    most = None if any_length else MAX_WORDS
    checks: CheckOptions = {"advice": ""}
    for row in treebank_examples(path, example, checks, require_heads=True, most_words=most):
        yield row.sentences[0]


def check_labelled(sentence: Sentence, file: str, *, single_root: bool) -> None:
    """Refuse a sentence without a labelled tree."""
    heads, labels = check_tree(sentence, f"{file}, line {sentence.line}"), sentence.labels
    word, problem = 0, ""
    if labels is None or "_" in labels:
        word = 1 if labels is None else labels.index("_") + 1
        problem = "no label (_); expected one in DEPREL for every word"
    elif single_root and heads.count(0) > 1:
        word = heads.index(0, heads.index(0) + 1) + 1
        problem = "head 0 for a second word; expected one root, or a parser trained with --set "
        problem += "model.single_root=false"
    if problem:
        raise DataError(f"{file}, line {sentence.line_of(word)}: received {problem}")


def read_examples(config: ParserConfig, structure: Structure, source: Source) -> Examples:
    """The sentences that a user names, read as they are asked for."""
    if not is_treebank(source):
        if source.keep or source.scored:
            option, what = "--keep" if source.keep else "--data", source.file or "TEXT"
            raise InputError(f"{option}: {what} has no heads; expected a CoNLL-U file")
        return read_texts(ReadOptions(), source, written_words)

    def example(sentence: Sentence, name: str) -> Example:
        if source.scored:
            check_labelled(sentence, name, single_root=config.model.single_root)
        if source.keep:
            check_known(sentence, structure, name)
        elif sentence.heads is not None and -1 in sentence.heads:
            sentence = replace(sentence, heads=None)
        return _retokenised(sentence, name) if source.raw else _example(sentence)

    advice = "--max-length N" if source.scored else "--unusable drop" * source.keep_empty
    checks: CheckOptions = {"unusable": source.unusable or "error", "advice": advice}  # type: ignore[typeddict-item]
    whole = source.gold or source.scored
    file = str(source.file)
    return treebank_examples(file, example, checks, require_heads=whole, partial=not whole)


def _retokenised(sentence: Sentence, file: str) -> Example:
    """The text of a sentence in words of our tokenizer, with the sentence next to it."""
    text, tokens = sentence.metadata.get("text", ""), surface_tokens(sentence)
    if characters(text) != characters("".join(form for form, _ in tokens)):
        received = f"received {f'the text {short(text)}' if text else 'no text'}"
        raise DataError(
            f"{file}, line {sentence.line}: {received}; expected a comment # text = ... with all words "
            "below it for --raw"
        )
    return Example((tuple(written_words(text)),), sentence.line, None, sentence)


def check_known(sentence: Sentence, structure: Structure, file: str) -> None:
    """Refuse known heads that are in no tree."""
    if sentence.heads is None:
        return
    try:
        structure.argmax(constrain(heads=torch.tensor(sentence.heads)))
    except NoTreeError:
        known = [m for m, head in enumerate(sentence.heads, 1) if head >= 0]
        raise DataError(
            f"{file}, line {sentence.line_of(known[0])}: the heads given from here on leave "
            f"{structure.none_left}; expected heads of one tree, and _ where they are not known"
        ) from None


def own_examples(
    config: ParserConfig, origins: Mapping[str, Origin], split: str, *, limit: int | None = None
) -> Examples:
    """The sentences of a split of a run, if its file is still the same."""
    path = find_split(config.data, split, origins)
    sentences = read_treebank(path, single_root=config.model.single_root)
    return Examples(path, map(_example, islice(sentences, limit)))


def _example(sentence: Sentence) -> Example:
    return Example((sentence,), sentence.line, None, sentence)


# ------------------------------------------------------------------ training data


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
        options = {"single_root": config.model.single_root, "any_length": split == "train"}
        for sentence in read_treebank(path, **options):
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
        labels = [label for sentence in splits[split] for label in sentence.labels or ()]
        new = [label for label in labels if universal(label) not in known_labels]
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


def choose_labelled(
    sentences: Sequence[Sentence], data: DataConfig
) -> tuple[list[Sentence], list[Sentence]]:
    """The share of the training sentences that is labelled, and the others; more contain fewer."""
    generator = torch.Generator().manual_seed(data.seed)
    order = torch.randperm(len(sentences), generator=generator).tolist()
    count = max(1, round(data.labelled * len(sentences)))
    return tuple([sentences[i] for i in sorted(part)] for part in (order[:count], order[count:]))  # type: ignore[return-value]


def load_unlabelled(
    config: ParserConfig, rest: Sequence[Sentence]
) -> tuple[list[Sentence], list[str]]:
    """The sentences without trees of a config, and notes on them."""
    data, structure = config.data, config.model.make_structure()
    sentences = list(rest) if data.rest == "unlabelled" else []
    notes: list[str] = []
    for file in data.files("unlabelled"):
        examples = read_examples(config, structure, Source(file=file))
        for example in examples:
            [sentence] = example.sentences
            if data.tags != "none" and set(tags_of(sentence, data.tags)) == {"_"}:
                raise DataError(
                    f"{examples.name}, line {example.line}: received words without "
                    f"{data.tags.upper()}, which data.tags={data.tags} reads; expected CoNLL-U with "
                    "them"
                )
            sentences.append(sentence)
        notes += examples.notes()
    chosen = [
        replace(sentence, heads=None, labels=None, lines=())
        for sentence in sentences
        if len(sentence) <= data.max_length
    ]
    if sentences:
        notes.append(f"unlabelled: {counted(len(chosen), 'sentence')}")
    if left := len(sentences) - len(chosen):
        notes[-1] += f", and {left:,} of more than {data.max_length} words left out"
    return chosen, notes
