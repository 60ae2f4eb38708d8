"""The paper's controlled experiment: training and testing of models of ListOps."""
