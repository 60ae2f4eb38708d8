"""Sentences of CoNLL-U as they stand in their file: for a tree put into it all else stays.

`treelax.data.conllu.Sentence` has what a tree needs; a `Block` also has the place in the file and
every line, so that what a model says can be written beside what the treebank says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from treelax.data.conllu import (
    COLUMNS,
    Sentence,
    blocks_of_lines,
    load_library,
    sentence_of_block,
    treebank,
)
from treelax.errors import InputError

__all__ = ["Block", "read_blocks"]

HEAD, DEPREL, MISC = (COLUMNS.index(name) for name in ("HEAD", "DEPREL", "MISC"))
_COMMENT = re.compile(r"#\s*([^=]*?)\s*(?:=.*)?")


@dataclass(frozen=True)
class Block:
    """A sentence with its lines in the file.

    Attributes:
        line: the number of its first line, a comment if there is one, counted from 1.
        lines: all its lines, without their ends.
        sentence: what they say.
    """

    line: int
    lines: tuple[str, ...]
    sentence: Sentence

    def with_tree(
        self,
        heads: Sequence[int] | None,
        *,
        columns: Mapping[str, Sequence[str]] | None = None,
        misc: Mapping[str, Sequence[str]] | None = None,
        comments: Mapping[str, str] | None = None,
    ) -> list[str]:
        r"""The lines with another tree in them.

        Of every word HEAD is replaced and DEPREL becomes ``_``, for the label was that of the other
        head. All other columns, comments, multiword tokens (``1-2``) and empty nodes (``1.1``) stay.

        Args:
            heads: of the n words, counted from 1, 0 the root; None to leave HEAD and DEPREL as they
                are.
            columns: by name of a column, ``"UPOS"`` say, of each word what is to stand there.
            misc: by name, of each word a value to add to MISC; one of that name is replaced.
            comments: to add after those of the file; one of that name is replaced in its place.

        Returns:
            The lines, without their ends.

        Raises:
            InputError: there is another number of heads or values than of words.

        Example:
            >>> row = "1\tHi\thi\tINTJ\t_\t_\t0\troot\t_\t_"
            >>> block = Block(1, ("# text = Hi", row), Sentence(("Hi",), (0,)))
            >>> block.with_tree([0], comments={"label": "yes"})
            ['# text = Hi', '# label = yes', '1\tHi\thi\tINTJ\t_\t_\t0\t_\t_\t_']
        """
        given = {} if heads is None else {"heads": heads}
        for name, values in {**given, **(columns or {}), **(misc or {})}.items():
            if len(values) != len(self.sentence):
                raise InputError(
                    f"{name}: received {len(values)}; expected one for each of the "
                    f"{len(self.sentence)} words"
                )
        new = dict(comments or {})
        found = []
        for text in self.lines:
            if not text.startswith("#"):
                break
            match = _COMMENT.fullmatch(text)
            name = match.group(1) if match else ""
            found.append(f"# {name} = {new.pop(name)}" if name in new else text)
        rows = list(self.lines[len(found) :])
        found += [f"# {name} = {value}" for name, value in new.items()]
        word = 0
        for row in rows:
            cells = row.split("\t")
            if not row.startswith("#") and cells[0].isdigit():
                if heads is not None:
                    cells[HEAD], cells[DEPREL] = str(heads[word]), "_"
                for name, values in (columns or {}).items():
                    cells[COLUMNS.index(name)] = values[word]
                for name, values in (misc or {}).items():
                    cells[MISC] = _with_feature(cells[MISC], name, values[word])
                word += 1
            found.append("\t".join(cells))
        return found


def _with_feature(column: str, name: str, value: str) -> str:
    """A column of features, ``A=1|B=2`` or ``_``, with one more at its end."""
    others = [each for each in column.split("|") if each != "_" and not each.startswith(f"{name}=")]
    return "|".join([*others, f"{name}={value}"])


def read_blocks(path: str | os.PathLike[str], *, require_heads: bool = True) -> Iterator[Block]:
    r"""Read the sentences of a CoNLL-U file one by one, each with its lines.

    Args:
        path: the file, plain, compressed or in a ``.zip``, as for `read_conllu`.
        require_heads: refuse sentences without heads.

    Returns:
        An iterator over the sentences, which reads on as it is asked.

    Raises:
        DataError: as `treelax.data.conllu.read_conllu`.
        BackendError: the conllu library is not installed.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "one.conllu")
        ...     count = path.write_text("\n# sent_id = a\n1\tHi\t_\t_\t_\t_\t0\t_\t_\t_\n\n")
        ...     [(block.line, block.sentence.id) for block in read_blocks(path)]
        [(2, 'a')]
    """
    library, source = load_library(), treebank(path)
    return (
        Block(
            block[0][0],
            tuple(text for _, text in block),
            sentence_of_block(library, source.name, block, require_heads),
        )
        for block in blocks_of_lines(source.lines())
    )
