"""Operations on batches of projective trees: tensors in, tensors out.

========================  ==========================================================
`best_tree`               the tree of the highest score, 0/1
`soft_tree`               its relaxation, differentiable
`log_partition`           log-sum over all trees, differentiable
`sample_tree`             exact samples
`select_heads`            the ablation: every word chooses its head on its own
`synchronize`             waits for GPUs and raises what they found wrong with the above
========================  ==========================================================
"""

from treelax.ops.heads import select_heads
from treelax.ops.problems import synchronize
from treelax.ops.projective import best_tree, log_partition, sample_tree, soft_tree

__all__ = [
    "best_tree",
    "log_partition",
    "sample_tree",
    "select_heads",
    "soft_tree",
    "synchronize",
]
