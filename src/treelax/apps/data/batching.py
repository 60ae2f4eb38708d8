"""Batches of sentences of similar length: drawn at random to train, all in order to parse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from treelax.errors import InputError

MOST_ARCS = 4_000_000  # in a batch of trees; long sentences come in smaller batches


def draw_batches(
    lengths: Tensor,
    batch_size: int,
    *,
    generator: torch.Generator,
    batches: int | None = None,
    pool: int = 50,
) -> Tensor:
    """Draw batches whose examples need little padding.

    Examples are shuffled and cut into pools of ``pool`` batches; inside a pool they are sorted by
    length, cut into batches, and the batches of all pools are shuffled. ``pool=1`` does not sort.

    Args:
        lengths: ``(N,)`` or ``(N, k)`` for examples of k sentences; sorted by the longest.
        batches: how many; by default the full batches of one pass. More start a new pass.

    Returns:
        ``(batches, batch_size)`` indices, int64, on the CPU. With fewer examples than a batch, some
        come twice.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> lengths = torch.tensor([3, 9, 4, 8])
        >>> sorted(sorted(batch) for batch in draw_batches(lengths, 2, generator=generator).tolist())
        [[0, 2], [1, 3]]
    """
    if len(lengths) == 0:
        raise InputError("lengths: received no examples; expected at least one")
    longest = lengths if lengths.dim() == 1 else lengths.amax(1)
    count = max(1, len(longest) // batch_size) if batches is None else batches
    wanted = count * batch_size
    passes = range(0, wanted, len(longest))
    order = torch.cat([torch.randperm(len(longest), generator=generator) for _ in passes])[:wanted]
    if pool > 1:
        group = torch.arange(wanted) // (pool * batch_size)
        # by pool, then by length; the random order decides among equals
        key = group * (int(longest.max()) + 1) + longest[order]
        order = order[key.argsort(stable=True)]
    return order.view(count, batch_size)[torch.randperm(count, generator=generator)]


def length_batches(
    lengths: Sequence[int] | Mapping[int, int],
    *,
    most_arcs: int = MOST_ARCS,
    most_sentences: int | None = None,
    texts: int = 1,
) -> Iterator[list[int]]:
    """Places of sentences of similar length, as many as fit into memory, short ones first.

    `lengths` has the words of each sentence, or of some of them by place; each place stands for
    `texts` sentences of that length. Padding counts as arcs.

    Example:
        >>> list(length_batches([5, 2, 3], most_sentences=2))
        [[1, 2], [0]]
    """
    by_place = lengths if isinstance(lengths, Mapping) else dict(enumerate(lengths))
    batch: list[int] = []
    for place in sorted(by_place, key=by_place.__getitem__):
        arcs = texts * (by_place[place] + 1) ** 2  # with the root
        if batch and (len(batch) == most_sentences or (len(batch) + 1) * arcs > most_arcs):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
