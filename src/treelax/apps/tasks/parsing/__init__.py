"""Dependency parsing: parsers trained on treebanks."""
