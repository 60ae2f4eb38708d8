"""What came out: tables over runs, attachment, agreement, statistics of trees."""
