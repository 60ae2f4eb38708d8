"""The dynamic program of binary trees (CKY), exact and relaxed; the README here explains it."""
