"""ListOps valency tagging: the paper's controlled experiment (section 5)."""
