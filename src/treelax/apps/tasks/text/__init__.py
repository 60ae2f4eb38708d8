"""Tasks on sentences: classes of a text, relations of two texts, tags of words."""
