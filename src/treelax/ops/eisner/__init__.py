"""The projective dynamic program (Eisner 1996), exact and relaxed; the README here explains it."""
