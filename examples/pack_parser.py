"""A trained parser as one small file with its word vectors; how the parser `english` was made.

    python examples/pack_parser.py runs/english english.safetensors --vectors spacy_md_300d.npz \\
        --about "treebank=UD English-EWT" --about "treebank licence=CC BY-SA 4.0"

The file gets all words of the vectors, not only those of the treebank, and the scores that the packed
parser has on the dev and test data of its run.
"""

import argparse

import numpy

import treelax


def pack(run: str, out: str, vectors: list[str], about: dict[str, str]) -> None:
    parser = treelax.load(run, vectors=vectors)
    for file in vectors:
        parser.look_up(str(numpy.load(file)["words"]).split("\n"))
    parser.save(out, about)
    packed, scores = treelax.load(out), {}
    for split in ("dev", "test"):
        figures = packed.evaluate(list(parser.own_examples(split))).record()
        scores[split] = {key: figures[key] for key in ("sentences", "words", "uas", "las")}
        print(split, scores[split])
    parser.save(out, {**about, "treelax": treelax.__version__, "scores": scores})


if __name__ == "__main__":
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("run", help="folder of the run")
    options.add_argument("out", help="file to write")
    options.add_argument("--vectors", nargs="*", default=[], help="of the run, as .npz")
    options.add_argument("--about", action="append", default=[], metavar="KEY=TEXT")
    given = options.parse_args()
    pack(given.run, given.out, given.vectors, dict(fact.split("=", 1) for fact in given.about))
