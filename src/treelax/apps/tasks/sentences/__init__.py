"""What tasks on sentences share: reading, transformers, word vectors, trained models, origins."""
