"""ListOps, nested lists of digits whose gold trees are known (Nangia & Bowman 2018).

An *expression* such as ``[MAX 2 9 [MIN 4 7 ] 0 ]`` is a sentence of tokens. Its tree: every token
hangs off the innermost open operator, ``]`` off its own operator, the outermost operator off the
root. The task is to tag each operator with its *valency*, the number of its arguments.
"""

from treelax.data.listops.expression import (
    CLOSE,
    DIGITS,
    OPERATORS,
    TOKEN_IDS,
    VOCABULARY,
    EncodedListOps,
    Expression,
    baseline_heads,
    encode_listops,
    listops_statistics,
    parse_expression,
    read_line,
    read_listops,
    write_listops,
)
from treelax.data.listops.generator import generate_listops, generate_splits

__all__ = [
    "CLOSE",
    "DIGITS",
    "OPERATORS",
    "TOKEN_IDS",
    "VOCABULARY",
    "EncodedListOps",
    "Expression",
    "baseline_heads",
    "encode_listops",
    "generate_listops",
    "generate_splits",
    "listops_statistics",
    "parse_expression",
    "read_line",
    "read_listops",
    "write_listops",
]
