"""What headings of the report mean, for those that no table of a study explains itself."""

# sections, by their ids
SECTIONS = {
    "results": "How well the finished runs do on their dev and test sets.",
    "training": "Loss and dev figures after every epoch.",
    "trees": "What the trees look like, what they agree with, and how sure the runs are of them.",
    "examples": "Sentences with the trees and the predictions of the runs.",
    "settings": "What the runs were trained with.",
}
# columns of tables, and facts of a run
COLUMNS = {
    "preset": "the settings that the run started from",
    "seed": "of initial weights, batches and noise",
    "best epoch": "the epoch with the best dev figures, whose model is kept",
    "discrete trees": "labels that are right with discrete trees, as in use, %",
    "soft trees": "labels that are right with soft trees, as in training, %",
    "gap": "by how many points discrete trees are better",
    "operators": "operators with the right tag, %",
    "operators, soft trees": "the same with soft trees, as in training",
    "all tokens": "tokens of all kinds with the right tag, %",
    "all tokens, soft trees": "the same with soft trees, as in training",
    "attachment": "tokens with their gold head, %",
    "exact trees": "expressions with their whole gold tree, %",
    "UAS": "words with their gold head, %",
    "LAS": "words with their gold head and label, %",
    "exact LAS": "the same, where subtypes of labels count too",
}
