"""The projective dynamic program (Eisner 1996), exact and relaxed; see the README of this folder."""
