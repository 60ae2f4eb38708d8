"""Where the scores on the page come from: the base of all sources, zeros, and random numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treelax.demo.messages import MOST_WORDS, Answer, Defaults
from treelax.errors import InputError
from treelax.structures import Projective, Structure

__all__ = ["RandomSource", "Scored", "Source", "ZeroSource", "counted"]

RANDOM_SCALE = 2.0  # of random scores: enough for one tree to stand out


@dataclass(frozen=True, eq=False)
class Scored:
    """A text as words, and the scores of all arcs between them.

    Attributes:
        words: of the text, without the root.
        scores: ``(n + 1, n + 1)``, float32; ``scores[h, m]`` for head ``h`` and word ``m``.
        null: the first word is the NULL token, which no text has.
    """

    words: tuple[str, ...]
    scores: Tensor
    null: bool = False


class Source(ABC):
    """Something that has scores for a text; usable from several threads.

    Attributes:
        label: what it is, for people.
        texts: names of the texts that it takes, one or two.
        example: a text that it knows what to do with.
        second_example: a second one; None if it takes one.
        structure: what the words choose, such as projective trees.
        defaults: settings to begin with.
    """

    label: str
    texts: tuple[str, ...] = ("text",)
    second_example: str | None = None
    example = "the old cat watched a small bird"
    structure: Structure = Projective()
    defaults = Defaults()

    @abstractmethod
    def scored(self, text: str, seed: int) -> Scored:
        """The words of a text and their scores.

        Args:
            text: any.
            seed: of random scores.

        Raises:
            InputError: it has too many words, none, or words that are not known.
        """

    def answer(self, texts: Sequence[Scored], trees: Sequence[Tensor]) -> Answer | None:
        """What the model behind the scores says of the texts, given their trees.

        Args:
            texts: as `scored` gave them; one, or two where the source takes two.
            trees: of each text, ``(n + 1, n + 1)`` of 0 and 1.

        Returns:
            The answer, or None if there is no model or it has none to give.
        """
        return None


class ZeroSource(Source):
    """All scores 0: every tree is as good as any other.

    Example:
        >>> ZeroSource().scored("dogs bark", 0).scores.shape
        torch.Size([3, 3])
    """

    label = "no model: all scores 0"

    def scored(self, text: str, seed: int) -> Scored:
        """The words between white space, and zeros."""
        words = counted(text.split())
        return Scored(words, torch.zeros(len(words) + 1, len(words) + 1))


class RandomSource(Source):
    """Gaussian scores; a word more leaves those of the words before it as they were.

    Example:
        >>> short, long = (RandomSource().scored(text, 7).scores for text in ("a b", "a b c"))
        >>> torch.equal(short, long[:3, :3])
        True
    """

    label = "no model: random scores"

    def scored(self, text: str, seed: int) -> Scored:
        """The words between white space, and the scores that the seed gives."""
        words = counted(text.split())
        generator = torch.Generator().manual_seed(seed)
        everything = torch.randn(MOST_WORDS + 1, MOST_WORDS + 1, generator=generator)
        size = len(words) + 1
        return Scored(words, RANDOM_SCALE * everything[:size, :size])


def counted(words: Sequence[str]) -> tuple[str, ...]:
    """The words, if there are neither none nor too many.

    Args:
        words: of one text.

    Returns:
        The same.

    Raises:
        InputError: there are none, or too many.

    Example:
        >>> counted(["dogs", "bark"])
        ('dogs', 'bark')
    """
    if not words:
        raise InputError(f"text: received no words; expected 1 to {MOST_WORDS}")
    if len(words) > MOST_WORDS:
        raise InputError(f"text: received {len(words)} words; expected at most {MOST_WORDS}")
    return tuple(words)
