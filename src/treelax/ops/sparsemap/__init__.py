"""SparseMAP: the projection of scores on the polytope of trees."""
