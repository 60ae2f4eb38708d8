"""Sets of encoded examples made of others: without the long ones, one behind the other."""

from __future__ import annotations

from dataclasses import replace

import torch

from treelax.data.text.encoding import EncodedText
from treelax.errors import InputError
from treelax.tasks.text.given_trees import TreedText

__all__ = ["joined", "without_long"]


def without_long(data: EncodedText, longest: int) -> tuple[EncodedText, int]:
    """Leave out the examples with a text of more words than ``longest``."""
    keep = (data.lengths <= longest).all(1)
    if bool(keep.all()):
        return data, 0
    if not bool(keep.any()) and data.tagged and len(data) == 1:
        raise InputError(
            f"{data.source}: received one sentence of {int(data.lengths):,} words, more than "
            f"data.max_length={longest}; expected a word a line and a blank line between sentences: "
            "tables are for treelax train classify; if it is one sentence, raise it"
        )
    if not bool(keep.any()):
        raise InputError(
            f"data.max_length is {longest} and all examples of {data.source} have a longer text; "
            "expected some that have not: raise it"
        )
    sentences = keep.repeat_interleave(data.texts)
    words = sentences.repeat_interleave(data.offsets.diff())
    lengths = data.offsets.diff()[sentences]
    labels = data.labels
    if labels is not None:
        labels = labels[words] if data.tagged else labels[keep]
    shorter = replace(
        data,
        ids=data.ids[words],
        offsets=torch.cat((lengths.new_zeros(1), lengths.cumsum(0))),
        labels=labels,
        lines=data.lines[keep],
    )
    if isinstance(shorter, TreedText):
        shorter = replace(shorter, heads=shorter.heads[words])
    return shorter, int((~keep).sum())


def joined(first: EncodedText, second: EncodedText) -> EncodedText:
    """Put one set behind another; both have the same table and labels, and no trees."""
    assert first.labels is not None
    assert second.labels is not None
    return replace(
        first,
        ids=torch.cat((first.ids, second.ids)),
        offsets=torch.cat((first.offsets, first.offsets[-1] + second.offsets[1:])),
        labels=torch.cat((first.labels, second.labels)),
        lines=torch.cat((first.lines, second.lines)),
        source=f"{first.source} and {second.source}",
        parts=tuple(
            part for data in (first, second) for part in data.parts or ((len(data), data.source),)
        ),
    )
