"""Pre-trained transformers from folders, through the transformers library, loaded when needed.

Only local folders are read, only safetensors weights, and no code that comes with a model is run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from treelax.apps.data.text.encoding import EncodedText
from treelax.apps.data.text.ptb import plain_word
from treelax.apps.data.text.vectors import Vectors
from treelax.apps.tasks.sentences.hub import first_line
from treelax.errors import BackendError, CheckpointError, DataError, InputError, install_command
from treelax.nn.transformer import Subwords, SubwordTransformer

Config = TypeVar("Config", bound=Any)  # of a model, with `pretrained`
COPY = "transformer"  # the folder inside of a run that holds its transformer

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
# all that a model needs, and nothing else that may lie in its folder
OWN = re.compile(
    r"config\.json|tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json"
    r"|added_tokens\.json|vocab\.(?:txt|json)|merges\.txt|.+\.model"
    r"|model(?:-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json"
)
NO_LIMIT = 10**9  # tokenizers without a limit say some such number


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Refuse a folder that holds no model, as far as the names of its files tell."""
    place = Path(folder)
    missing = [name for name in ("config.json", "tokenizer.json") if not (place / name).is_file()]
    if not any((place / name).is_file() for name in WEIGHTS):
        missing.append(WEIGHTS[0])
    if missing:
        what = f"has no {missing[0]}" if place.is_dir() else "is no folder"
        raise InputError(
            f"model.pretrained is {place}, which {what}; expected a Hugging Face model: config.json, "
            "tokenizer.json (a fast tokenizer) and model.safetensors (not pickled)"
        )
    _library()
    return place


def load_transformer(
    folder: str | os.PathLike[str], *, subwords: Subwords = "mean", frozen: bool = False
) -> tuple[SubwordTransformer, Split]:
    """Load a model and its tokenizer."""
    place = check_folder(folder)
    library = _library()
    # from a folder alone, and without its code
    safe = {"local_files_only": True, "trust_remote_code": False}
    with _loading(place, "tokenizer"):
        tokenizer = library.AutoTokenizer.from_pretrained(place, add_prefix_space=True, **safe)
    with _loading(place, "config.json or weights"):
        # the library's error for shapes refers to a report that is hidden
        model, report = library.AutoModel.from_pretrained(
            place,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **safe,
        )
    _check_weights(place, report)
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # of the first token, whose vector is not used: it would learn nothing
    model.config.use_cache = False
    split = _splitter(tokenizer, model.get_input_embeddings().num_embeddings, place)
    prefix, suffix = _around(tokenizer)
    layer = SubwordTransformer(
        model.float(),
        model.config.hidden_size,
        prefix=prefix,
        suffix=suffix,
        padding=tokenizer.pad_token_id or 0,
        limit=_limit(model, tokenizer),
        subwords=subwords,
        frozen=frozen,
    )
    return layer, split


def copy_folder(folder: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy the files of a model; the copy appears whole or not at all."""
    source, place = Path(folder), Path(target)
    if place.exists():
        return
    temporary = place.with_name(f".{place.name}.part")
    try:
        shutil.rmtree(temporary, ignore_errors=True)  # what a kill left
        temporary.mkdir()
        for file in sorted(source.iterdir()):
            if OWN.fullmatch(file.name) and file.is_file():
                with file.open("rb") as old, (temporary / file.name).open("xb") as new:
                    shutil.copyfileobj(old, new, 1 << 20)
                    new.flush()
                    os.fsync(new.fileno())
        os.replace(temporary, place)
    except OSError as error:
        raise CheckpointError(
            f"{place}: was not copied from {source}: {error.strerror or error}; mend that and use "
            "--resume"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def with_own_copy(model: Config, folder: str | os.PathLike[str]) -> Config:
    """Settings of a model that name the copy in the folder of a run, if there is one."""
    copy = Path(folder, COPY)
    if model.pretrained is None or not copy.is_dir():
        return model
    return replace(model, pretrained=str(copy))


def _library() -> Any:
    try:
        return import_module("transformers")
    except ImportError as error:
        raise BackendError(
            "model.pretrained is a transformer, and the transformers library is not installed: "
            f"{install_command('hf')}"
        ) from error


@contextmanager
def _loading(place: Path, part: str) -> Iterator[None]:
    """Silence the library while it loads a part of a model, and explain what it raises."""
    logging = _library().utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except Exception as error:  # the library raises those of several others
        raise InputError(
            f"model.pretrained is {place}, whose {part} cannot be loaded ({type(error).__name__}: "
            f"{first_line(error)}); expected a complete Hugging Face model that needs no code of its own"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _check_weights(place: Path, report: dict[str, Any]) -> None:
    """Refuse weights that do not fit, except the pooler's, which is not used."""
    wrong = {name: f"lack {name}" for name in report["missing_keys"]}
    for name, received, expected in report["mismatched_keys"]:
        shapes = f"is of shape {tuple(received)}, expected {tuple(expected)}"
        wrong[name] = f"do not fit its config.json: {name} {shapes}"
    others = [text for name, text in sorted(wrong.items()) if not name.startswith("pooler.")]
    if others:
        raise InputError(
            f"model.pretrained is {place}, whose weights {others[0]}; take all files from one model"
        )


def _splitter(tokenizer: Any, known: int, place: Path) -> Split:
    """What cuts words into sub-words as within a sentence."""
    described = json.loads(tokenizer.backend_tokenizer.to_str())["pre_tokenizer"]
    # byte-level tokenizers know a word by the space in front of it
    space = " " if "'ByteLevel'" in str(described) else ""

    def split(words: Sequence[str]) -> list[list[int]]:
        pieces: list[list[int]] = tokenizer(
            [[space + word] for word in words],
            is_split_into_words=True,
            add_special_tokens=False,
            return_attention_mask=False,
            verbose=False,
        )["input_ids"]
        highest = max((piece for row in pieces for piece in row), default=0)
        if highest >= known:
            raise InputError(
                f"model.pretrained is {place}, whose tokenizer gives sub-word {highest} and whose "
                f"weights have vectors of {known}; expected tokenizer and weights of one model"
            )
        return pieces

    return split


def _around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens in front of and behind a sentence."""
    encoded = tokenizer(["a"], is_split_into_words=True)
    ids, words = encoded["input_ids"], encoded.word_ids(0)
    inside = [place for place, word in enumerate(words) if word is not None]
    return (ids[: inside[0]], ids[inside[-1] + 1 :]) if inside else ([], [])


def _limit(model: nn.Module, tokenizer: Any) -> int | None:
    """The most sub-words of a sentence, special tokens counted."""
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa counts positions from behind the number of its padding
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    return min((limit for limit in limits if limit and 0 < limit < NO_LIMIT), default=None)


MOST_NEW = 100_000  # words that a table remembers beside those it started with
Split = Callable[[Sequence[str]], list[list[int]]]


def whole_words(words: Iterable[str]) -> Vectors:
    """Rows for words that need no vectors, since a transformer makes them."""
    known = {word: row for row, word in enumerate(dict.fromkeys(words), 3)}
    return Vectors(torch.zeros(len(known) + 3, 0), known, unknown=1)


class SubwordTable:
    """Ids of words, whose sub-words a transformer is given; a new word gets the next id."""

    def __init__(self, layer: SubwordTransformer, split: Split, vectors: Vectors) -> None:
        self._layer, self._split, self._started = layer, split, vectors
        self._rows = dict(vectors.known)
        self._sizes = [0] * len(vectors.matrix)  # sub-words of each row, known without the device
        rows: list[list[int]] = [[] for _ in range(len(vectors.matrix))]
        for row, pieces in zip(self._rows.values(), self._cut(list(self._rows)), strict=True):
            rows[row] = pieces
            self._sizes[row] = len(pieces)
        layer.set_pieces(rows)

    def ids(self, words: Iterable[str], /) -> list[int]:
        """The ids of some words."""
        words = list(words)
        new = [word for word in dict.fromkeys(words) if word not in self._rows]
        if new:
            pieces, first = self._cut(new), len(self._layer.starts) - 1
            self._layer.add_pieces(pieces)
            self._sizes.extend(map(len, pieces))
            self._rows.update(zip(new, range(first, first + len(new)), strict=True))
        return [self._rows[word] for word in words]

    def forget(self) -> None:
        """Forget new words if there are many: an endless stream of texts must fit into memory."""
        first = len(self._started.matrix)
        if len(self._sizes) - first > MOST_NEW:
            self._rows = dict(self._started.known)
            del self._sizes[first:]
            self._layer.keep_pieces(first)

    def check_length(self, words: Iterable[str], where: str) -> None:
        """Refuse a text that is too long for the transformer."""
        ids = self.ids(words)
        length = sum(self._sizes[row] for row in ids) + self._layer.around
        if self._layer.limit is not None and length > self._layer.limit:
            raise _too_long(where, len(ids), length, self._layer.limit)

    def _cut(self, words: Sequence[str]) -> list[list[int]]:
        return self._split([plain_word(word) for word in words]) if words else []


def subword_lengths(layer: SubwordTransformer | None, data: EncodedText) -> Tensor:
    """How many sub-words each text has, special tokens counted."""
    if layer is None:
        return torch.empty(len(data), 0, dtype=torch.int64)
    counts = layer.starts.diff().cpu()[data.ids]
    ends = torch.cat((counts.new_zeros(1), counts.cumsum(0)))[data.offsets]
    lengths = ends.diff().view(-1, data.texts) + layer.around
    if layer.limit is None or int(lengths.amax()) <= layer.limit:
        return lengths
    example, which = divmod(int(lengths.argmax()), data.texts)
    words = int(data.lengths[example, which])
    raise _too_long(data.where(example), words, int(lengths.amax()), layer.limit)


def _too_long(where: str, words: int, length: int, limit: int) -> DataError:
    return DataError(
        f"{where}: the text has {words} words, {length} sub-words with special tokens; expected at "
        f"most {limit}, which the transformer takes: shorten, split or remove it (data.max_length "
        "skips long training examples)"
    )
