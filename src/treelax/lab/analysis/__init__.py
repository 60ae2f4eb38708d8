"""Analysis: tables over runs, attachment, agreement, statistics of trees."""
