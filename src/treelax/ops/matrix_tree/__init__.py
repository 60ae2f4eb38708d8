"""Non-projective trees by the matrix-tree theorem, without subtraction; see the README here."""

from treelax.ops.backend import Algorithm
from treelax.ops.native_program import NativeProgram

ALGORITHM = Algorithm("matrix_tree", "tree", kind=2)
# planes: `saved_planes` in native/matrix_tree.cpp
native = NativeProgram(ALGORITHM, "matrix_tree_", planes=2, logarithms=True)
