"""The dynamic program of binary trees (CKY), exact and relaxed; the README here explains it."""

from treelax.ops.chart.plain import PlainBackend
from treelax.ops.chart.reference import ReferenceBackend
from treelax.ops.chart.rules import CKY

reference, diagonal = ReferenceBackend(CKY), PlainBackend(CKY)
