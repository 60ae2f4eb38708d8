"""Layers: from word vectors to scores of parts, to trees or chains, and back to word vectors."""

from treelax.nn.biaffine import BiaffineScorer
from treelax.nn.binary import BinaryTreeLSTM, SpanScorer
from treelax.nn.chain import ChainScorer
from treelax.nn.encoders import BiLSTM
from treelax.nn.gcn import TreeGCN
from treelax.nn.latent import LatentTree
from treelax.nn.mlp import MLP
from treelax.nn.root import Root
from treelax.nn.scorer import ArcScorer

__all__ = [
    "MLP",
    "ArcScorer",
    "BiLSTM",
    "BiaffineScorer",
    "BinaryTreeLSTM",
    "ChainScorer",
    "LatentTree",
    "Root",
    "SpanScorer",
    "TreeGCN",
]
