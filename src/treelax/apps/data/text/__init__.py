"""Text data: readers, tokeniser, vocabulary, word vectors and the encoded cache."""
