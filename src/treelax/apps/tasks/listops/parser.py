"""Trained ListOps taggers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.listops import (
    TOKEN_IDS,
    VOCABULARY,
    Expression,
    baseline_heads,
    parse_expression,
    read_line,
)
from treelax.apps.data.text.readers_table import read_lines_of_text
from treelax.apps.tasks.base import (
    Answer,
    Example,
    Examples,
    Prediction,
    Progress,
    Source,
    Text,
    TrainedParser,
)
from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.tasks.listops.data import load_split
from treelax.apps.tasks.listops.evaluation import Evaluation, evaluate, parse_all
from treelax.apps.tasks.listops.model import ListOpsTagger
from treelax.apps.training.checkpoint import load_checkpoint, restoring
from treelax.apps.training.config import from_table
from treelax.apps.training.run import best_model
from treelax.errors import InputError

AT_A_TIME = 256  # expressions


class ListOpsParser(TrainedParser):
    """A tagger of ListOps with its settings."""

    task = "listops"
    is_tagger = True
    sample = ("[MAX 2 9 [MIN 4 7 ] 0 ]",)

    def __init__(self, model: ListOpsTagger, config: ListOpsConfig, name: str = "listops") -> None:
        self.model, self.config, self.name = model, config, name
        self.trees = config.model.trees
        self.tree = None if model.parser is None else model.parser.tree
        self.labels = tuple(map(str, range(config.model.max_valency + 1)))

    def stream(
        self,
        texts: Iterable[Any],
        *,
        soft: bool = False,
        scores: bool = False,
        batch_size: int = AT_A_TIME,
        tokens: bool | None = None,
    ) -> Iterator[Prediction]:
        expressions = (_expression(text, f"texts[{i}]") for i, text in enumerate(texts))
        while some := list(islice(expressions, batch_size)):
            parses = parse_all(self.model, some, scores=scores)
            for expression, parse in zip(some, parses, strict=True):
                yield Prediction(
                    (expression.tokens,),
                    parse.soft_tags if soft else parse.tags,
                    heads=(parse.heads,),
                    scores=None if parse.scores is None else (parse.scores,),
                )

    def words(self, text: str) -> tuple[str, ...]:
        spaced = text.replace("]", " ] ").replace("[", " [").split()
        tokens = tuple(token for token in spaced if token not in ("(", ")"))
        for place, token in enumerate(tokens, 1):
            if token.upper() not in TOKEN_IDS:
                raise InputError(
                    f"token {place} is {token!r:.24}; expected {' '.join(VOCABULARY)}: this model "
                    "reads ListOps only"
                )
        return tuple(token.upper() for token in tokens)

    def shown_tags(self, prediction: Prediction) -> tuple[str, ...] | None:
        """The argument counts of operators, and of others where they are not 0."""
        assert isinstance(prediction.label, tuple)
        return tuple(self._shown(prediction.words[0], map(int, prediction.label)))

    def _shown(self, words: Sequence[str], tags: Iterable[int]) -> Iterator[str]:
        """Tags as text: ``5+`` where there are more arguments than the model has tags for."""
        largest = self.config.model.max_valency
        for word, tag, count in zip(words, tags, Expression(tuple(words)).valencies, strict=True):
            more = "+" if tag == largest < count else ""
            yield f"{tag}{more}" if tag or word.startswith("[") else ""

    def read(self, source: Source) -> Examples:
        form = None if source.form == "text" else source.form
        options = {"--text": source.columns, "--label": source.label, "--input": form}
        for option, value in options.items():
            if value:
                raise InputError(
                    f"{option}: received it for {self.name}; expected none: a file of ListOps has an "
                    "expression a line"
                )
        if source.texts:
            texts = enumerate(source.sentences, 1)
            return _examples("TEXT", [(i, read_line(text, "TEXT")) for i, text in texts])
        records = read_lines_of_text(sys.stdin.buffer if source.file == "-" else str(source.file))
        name = records.source
        examples = _examples(
            name, ((r.line, read_line(r.texts[0], f"{name}, line {r.line}")) for r in records)
        )
        return replace(examples, notes=lambda: records.report.lines())

    def own_examples(self, split: str, *, limit: int | None = None) -> Examples:
        expressions = load_split(self.config.data, split)
        return listops_examples(expressions[:limit], f"{split} set of {self.name}")

    def evaluate(
        self, examples: Sequence[Example], *, progress: Progress | None = None
    ) -> Evaluation:
        expressions = [Expression(example.sentences[0].words) for example in examples]
        return evaluate(self.model, expressions, progress=progress)

    @torch.no_grad()
    def arc_scores(self, text: Text) -> Tensor:
        words = text.words if isinstance(text, Sentence) else text
        self.require_scores()
        assert self.model.parser is not None
        ids = torch.tensor([[TOKEN_IDS[word] for word in words]], device=self._device)
        return self.model.parser.scores(ids, torch.tensor([len(words)]))[0].float().cpu()

    @torch.no_grad()
    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer:
        """Argument counts that the composer reads off the tree; value and gold tree of the whole."""
        words, tree = tuple(texts[0]), trees[0]
        tags = self.model.composer(tree[None].to(self._device))[0].argmax(-1).tolist()
        try:
            expression = Expression(words)
        except InputError as error:
            unfinished = "received the end" in str(error)
            what = "Not a whole expression yet" if unfinished else "Not an expression"
            return Answer(f"{what}: {error}", [str(tag) if tag else "" for tag in tags])
        heads = tree[:, 1:].argmax(0).tolist()
        pairs = zip(heads, expression.heads, strict=True)
        arcs = [a == b for a, b in pairs if b or self.config.model.root_arcs]
        operators = [i for i, kind in enumerate(expression.kinds) if kind == "operator"]
        read = sum(tags[i] == expression.valencies[i] for i in operators)
        return Answer(
            f"Value {expression.evaluate()}. The best tree has {sum(arcs)} of {len(arcs)} heads right; "
            f"from it the model reads {read} of {len(operators)} argument counts right.",
            list(self._shown(words, tags)),
            list(expression.heads),
        )

    @property
    def _device(self) -> torch.device:
        return self.model.composer.vertex.device


def load(
    path: Path,
    *,
    name: str,
    device: str | torch.device = "cpu",
    vectors: Sequence[Path] | None = None,
) -> ListOpsParser:
    """The trained model in a run folder or in a file."""
    if vectors:
        raise InputError(
            f"vectors: received {', '.join(map(str, vectors))}, and {name} is a model of ListOps, "
            "which uses no word vectors; expected none"
        )
    file = best_model(path)
    saved = load_checkpoint(file, kind="listops", device=device)
    with restoring(file):
        config = from_table(ListOpsConfig, saved.state.pop("config", {}), "config")
        model = ListOpsTagger(config.model).to(device)
        model.load_state_dict(saved.tensors)
    return ListOpsParser(model.eval(), config, name)


def _expression(text: Any, where: str) -> Expression:
    if isinstance(text, Expression):
        return text
    if isinstance(text, str):
        return parse_expression(text, where)
    return Expression(text.words if isinstance(text, Sentence) else tuple(text))


def listops_examples(expressions: Iterable[Expression], name: str) -> Examples:
    """Expressions as examples, with their gold heads and argument counts."""
    return _examples(name, enumerate(expressions, 1))


def _examples(name: str, expressions: Iterable[tuple[int, Expression]]) -> Examples:
    """Expressions with their gold heads; the kind of a token is its tag, its label what counts."""
    rows = (
        Example(
            (Sentence(expression.tokens, expression.heads, expression.kinds),),
            line,
            tuple(valency or None for valency in expression.valencies),
        )
        for line, expression in expressions
    )
    return Examples(name, rows, has_punctuation=False, baselines={"last operator": _last_operator})


def _last_operator(words: Sequence[str]) -> tuple[int, ...]:
    return baseline_heads(Expression(tuple(words)), "operator")
