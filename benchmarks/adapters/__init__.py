"""One file per measured library: from treelax's convention to the library's, and back."""
