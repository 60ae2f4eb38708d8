"""Hugging Face models of a few hundred weights with real tokenizers, saved as folders."""

from __future__ import annotations

import json
from pathlib import Path

import torch

WORDS = "the dogs bark loudly at a cat ( 1/2 ) it 's fun n't unbelievable film good bad sad fine"
POSITIONS = 40
SIZE = 16


def _save(folder: Path, tokenizer, special: dict[str, str], name: str, **settings: int) -> Path:
    """Save a tokenizer with a small model of the library."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    whole = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    whole.save_pretrained(folder)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=SIZE,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        **settings,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        getattr(transformers, f"{name}Model")(config).save_pretrained(folder)
    return folder


def _special(unknown: str, padding: str, first: str, last: str) -> dict[str, str]:
    return {"unk_token": unknown, "pad_token": padding, "cls_token": first, "sep_token": last}


def bert(folder: Path) -> Path:
    """Word pieces in small letters, ``[CLS]`` and ``[SEP]`` around."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([WORDS], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = _special("[UNK]", "[PAD]", "[CLS]", "[SEP]")
    return _save(folder, tokenizer, named, "Bert", max_position_embeddings=POSITIONS)


def roberta(folder: Path) -> Path:
    """Byte pairs that know a word by the space before it; positions count from 2."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([WORDS], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    named = _special("<unk>", "<pad>", "<s>", "</s>")
    _save(folder, tokenizer, named, "Roberta", max_position_embeddings=POSITIONS + 2, **ids)
    file = folder / "tokenizer_config.json"
    described = json.loads(file.read_text()) | {"tokenizer_class": "RobertaTokenizer"}
    file.write_text(json.dumps(described))
    return folder


MODELS = {"bert": bert, "roberta": roberta}
