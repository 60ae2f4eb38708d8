"""Non-projective trees by the matrix-tree theorem, without subtraction; see the README here."""
