"""The projective dynamic program (Eisner 1996), exact and relaxed; the README here explains it."""

from treelax.ops.chart.plain import PlainBackend
from treelax.ops.chart.reference import ReferenceBackend
from treelax.ops.chart.rules import EISNER

reference, diagonal = ReferenceBackend(EISNER), PlainBackend(EISNER)
