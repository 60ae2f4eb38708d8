"""The command line: ``treelax``. It needs the extra ``train``: ``pip install "treelax[train]"``."""
