"""The CKY algorithm and its relaxations in C++: `native/cky.cpp`."""

from treelax.ops.native import LONGEST_IN_LANES
from treelax.ops.native_program import NativeProgram

# `saved_planes` in native/cky.cpp
_program = NativeProgram("cky_", planes=4, largest=LONGEST_IN_LANES)

plan = _program.plan
saved_shape = _program.saved_shape
soft_tree = _program.soft_tree
soft_tree_backward = _program.soft_tree_backward
log_partition = _program.log_partition
best_tree = _program.best_tree
sample_tree = _program.sample_tree
