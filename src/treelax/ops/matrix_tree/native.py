"""Non-projective trees in C++: `native/matrix_tree.cpp`."""

from treelax.ops.native_program import NativeProgram

_program = NativeProgram(
    "matrix_tree_",
    planes=2,  # `saved_planes` in native/matrix_tree.cpp
    logarithms=True,
)

plan = _program.plan
saved_shape = _program.saved_shape
soft_tree = _program.soft_tree
soft_tree_backward = _program.soft_tree_backward
log_partition = _program.log_partition
best_tree = _program.best_tree
sample_tree = _program.sample_tree
