"""One engine for chart programs: dynamic programs over spans, each a table of rules."""
