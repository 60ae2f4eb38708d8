"""What the commands refuse: exit status 2, one line that says what was received, and nothing written."""

import gzip
import shlex
import shutil
from pathlib import Path

import pytest
from commands import TREEBANK, fail, saved, typed
from listops_runs import options

DATA = Path(__file__).parent.parent / "data"
FILES = {
    "a.txt": "fine\n",
    "latin.txt": b"fine\n\xff\n",
    "no-column.tsv": "txet\tx\nfine\t1\n",
    "ragged.tsv": "text\tx\nfine\n",
    "empty.tsv": "",
    "headings.tsv": "text\n",
    "latin.tsv": b"text\nfine\n\xff\n",
    "labels.tsv": "text\tlabel\nfine\tyes\ngood\tno\n",
    "three-columns.tsv": "text\tlabel\nfine\tyes\tno\n",
    "long.tsv": f"text\tlabel\nfine\tyes\n{'w ' * 33_000}\tno\n",
    "columns.tsv": "premise\thypothesis\tlabel\nfine\tgood\tyes\n",
    "number.jsonl": '{"text": 3}\n',
    "text.jsonl": "text\n",
    "plain.tsv.gz": b"text\nfine\n",
    "a.pdf": "x",
    "out.jsonl": "the older file",
    "other.html": "<h1>mine</h1>",
    "empty.conllu": "",
    "bank.conllu": TREEBANK,
    "broken.conllu": "1\tHi\n\n",
    "bare.conllu.gz": gzip.compress(b"1\tHi" + b"\t_" * 8 + b"\n\n"),
    "listops.tsv": (DATA / "listops_sample.tsv").read_bytes(),
    "pairs.jsonl": (DATA / "text" / "snli_sample.jsonl").read_bytes(),
    "sst/train.txt": "(3 (2 Not) (3 bad))\n",
    "sst/dev.txt": "(3 (2 Not) (3 bad)\n",
    "strange/config.toml": 'task = "chess"\n',
}
EXPRESSION = "'[MAX 2 [MIN 4 7 ] 0 ]'"
NOT_THERE = "which does not exist; expected the folder of a run or of a saved model, a file, or"
# in a folder with these files and the models classify, pair, tag, chain, none, intra and given
TABLE = [
    # the program
    ("--nonsense", "--nonsense; see treelax --help"),
    ("nonsense", "'nonsense'; see treelax --help"),
    ("eval x y z", "(y z); see treelax eval --help"),
    ("parse --sofd", "--soft"),
    ("analyse", "'RUN...'; see treelax analyse --help"),
    ("data listops --variant other", "'paulus'; see treelax data listops --help"),
    ("figure relaxation --temperature hot", "; see treelax figure relaxation --help"),
    ("train listops --epochs 3", "; expected --set train.epochs=3; see treelax train listops"),
    ("train tag --batch-size=8", "; expected --set train.batch_size=8; see treelax train tag"),
    ("table sst --epochs=7", "; expected --set train.epochs=7; see treelax table sst --help"),
    # not what --set refuses
    ("train tag --preset x", "--set, --test); see treelax train tag --help"),
    ("table sst --seed 1", "--seeds, --set); see treelax table sst --help"),
    # without the words of libraries
    ("predict x y --input z", "'--input': 'z' is not one"),
    ("analyse x --out a.txt", "'--out': 'a.txt' is a file"),
    ("figure relaxation --temperature 0", "or equal to 0.01;"),
    # parse: the model and the texts
    ("parse", "TEXT: received none; expected"),
    ("parse listops", "TEXT: received none, with the RUN listops; expected"),
    (f"parse listops {EXPRESSION} ' '", "expected a whole expression"),
    ("parse listops 'Dogs bark.'", "TEXT: token 1: received 'Dogs'; expected one of [MIN"),
    ("parse '[MAX 2 9'", "such as [MAX 2 9 ] (no RUN was named, so listops reads it)"),
    (f"parse runs/none {EXPRESSION}", f"RUN: received 'runs/none', {NOT_THERE}"),
    (f"parse nosuchrun {EXPRESSION}", f"RUN: received 'nosuchrun', {NOT_THERE}"),
    ("parse nosuchrun --file a.txt", f"RUN: received 'nosuchrun', {NOT_THERE}"),
    ("parse nosuchrun -", "if it is a text, name the model first: treelax parse english"),
    ("parse a.txt 'A text'", "a.txt: is cut off or damaged, or no checkpoint"),
    (f"parse missing.safetensors {EXPRESSION}", f"'missing.safetensors', {NOT_THERE}"),
    (f"parse . {EXPRESSION}", "holds neither config.toml nor config.json; expected the folder of"),
    (f"parse {EXPRESSION} --file a.txt", "TEXT: received '[MAX 2 [MIN 4 7 ] 0 ]' and a.txt"),
    (f"parse {EXPRESSION} -", "TEXT: received '[MAX 2 [MIN 4 7 ] 0 ]' and -;"),
    ("parse --file missing.txt", "missing.txt: does not exist"),
    (f"parse {EXPRESSION} --input tsv", "--input: received it for listops"),
    ("parse pair a b c", "TEXT: received 3; expected 2 for each example"),
    ("parse classify ''", "TEXT 1 is empty"),
    ("parse classify x\udcff", "TEXT 1 is not UTF-8"),
    ("parse classify 'A text.' --gold", "--gold: the right trees of these texts are not known"),
    ("parse tag --file bare.conllu.gz --gold", "bare.conllu.gz, line 1: "),
    ("parse none 'A text.'", "(model.trees is 'none')"),
    ("parse intra 'A text.'", "(model.trees is 'intra')"),
    ("parse given 'A text.'", "(model.trees is 'given')"),
    ("parse chain 'A text.' --soft", "model.trees is 'chain'"),
    ("parse chain 'A text.' --samples 3", "model.trees is 'chain'"),
    ("parse chain 'A text.' --format heatmap", "model.trees is 'chain'"),
    # parse: options and output
    (f"parse {EXPRESSION} --soft --out one.conllu", "--soft: received it with the format conllu"),
    (f"parse {EXPRESSION} --noise 1 --format heads", "--noise: received it with the format heads"),
    (
        f"parse {EXPRESSION} --soft --marginals",
        "--soft: received it with --marginals; expected one",
    ),
    (f"parse {EXPRESSION} --temperature 0", "--temperature: received 0; expected a number above 0"),
    (f"parse {EXPRESSION} --noise nan", "--noise: received nan; expected a number above 0"),
    (f"parse {EXPRESSION} --samples -1", "--samples"),
    (f"parse {EXPRESSION} --format svg --out b.txt", "for the format svg; expected a name in"),
    (f"parse {EXPRESSION} --format json --out b.svg", "for the format json; expected no name in"),
    (f"parse {EXPRESSION} --out b.foo", "--out: b.foo has no known ending; expected .txt, .json"),
    (f"parse {EXPRESSION} --out b.svg.gz", "--out: received b.svg.gz for the format svg; expected"),
    (f"parse {EXPRESSION} --out missing/b.svg", "missing/b.svg: there is no folder missing;"),
    (f"parse {EXPRESSION} --out . --format tree", ".: is a folder; expected a file"),
    ("parse --file a.txt --out a.txt", "--out: received a.txt, the file that is read; expected"),
    # predict
    ("predict english", "predict: received no FILE; expected one"),
    ("predict english a.txt --file x", "predict: received FILE and --file; expected one"),
    ("predict runs/star a.txt", f"'runs/star', {NOT_THERE}"),
    ("predict . a.txt", "holds neither config.toml nor config.json"),
    ("predict classify missing.txt", "missing.txt: does not exist; expected a file of texts"),
    ("predict classify no-column.tsv", "no-column.tsv, line 1: no column 'text'; did you mean"),
    ("predict classify ragged.tsv", "ragged.tsv, line 2: received 1 column; expected 2"),
    ("predict classify empty.tsv", "empty.tsv: received nothing; expected at least one record"),
    ("predict classify headings.tsv", "received nothing; expected at least one record"),
    ("predict classify empty.conllu", "received nothing; expected at least one sentence"),
    ("predict classify latin.tsv", "latin.tsv, line 3: is not UTF-8"),
    ("predict classify latin.txt", "latin.txt, line 2: is not UTF-8"),
    ("predict classify number.jsonl", "line 1: received 3 as 'text'; expected"),
    ("predict classify text.jsonl", "text.jsonl, line 1"),
    ("predict classify plain.tsv.gz", "plain.tsv.gz, after line 0: cannot be read"),
    ("predict classify a.pdf", "a.pdf: received a file in '.pdf'; expected .tsv, .tab, .csv"),
    ("predict classify labels.tsv --text a --text b", "--text: received a b; expected"),
    ("predict classify a.txt --text x", "--text and --label: received 'x', a column"),
    ("predict classify a.txt --input xls", "Invalid value for '--input': "),
    ("predict classify a.txt --format xml", "Invalid value for '--format': "),
    ("predict classify a.txt --batch-size 0", "Invalid value for '--batch-size': "),
    ("predict classify a.txt --device gpu", "device is 'gpu'; expected cpu, cuda"),
    ("predict classify a.txt --out b.json.gz", "has no known ending"),
    ("predict classify a.txt --out missing/b.tsv", "missing/b.tsv: there is no folder missing;"),
    ("predict classify latin.tsv --out out.jsonl", "latin.tsv, line 3: is not UTF-8"),
    ("predict pair a.txt", "line 1: received 1 "),
    ("predict pair a.txt --input conll", "--input"),
    ("predict pair empty.conllu", "has no pairs"),
    ("predict pair labels.tsv --text text", "--text"),
    ("predict tag a.txt", "does not say what is on a line; expected --input conll"),
    ("predict tag - --input jsonl", "standard input"),
    ("predict given labels.tsv", "labels.tsv: the model takes given trees with its texts"),
    ("predict given -", "-: the model takes given trees with its texts"),
    ("predict given bare.conllu.gz", "bare.conllu.gz, line 1: "),
    # eval
    ("eval listops --data empty.tsv", "empty.tsv"),
    ("eval listops --data missing.tsv", "missing.tsv: does not exist"),
    (
        "eval listops --data listops.tsv --max-length 2",
        "none of its 12 examples has 1 to 2 words; c",
    ),
    ("eval listops --data listops.tsv --max-length 0", "--max-length"),
    ("eval tag --data bare.conllu.gz", "bare.conllu.gz: received no example with a label"),
    # data
    ("data listops", "expected either --out FOLDER"),
    ("data listops --stats", "expected either --out FOLDER"),
    ("data listops listops.tsv", "expected either --out FOLDER"),
    ("data listops --out new listops.tsv", "expected either --out FOLDER"),
    ("data listops --stats listops.tsv --out new", "expected either --out FOLDER"),
    ("data listops --stats listops.tsv --max-length 1", "tokens; expected "),
    ("data listops --out new --train 0", "Invalid value for '--train': "),
    ("data listops --out new --seed -1", "Invalid value for '--seed': "),
    ("data listops --out new --max-length 3", "max_length"),
    ("data listops --out a.txt", "is a file"),
    ("data listops --out a.txt/new --train 9 --dev 9 --test 9", "Not a directory"),
    ("data sst --from pairs.jsonl --out new", "pairs.jsonl: is one file; expected an archive"),
    ("data sst --from missing", "missing: does not exist; expected trainDevTestTrees_PTB.zip"),
    ("data sst --from sst --out new", "sst/dev.txt, line 1: "),
    ("data sst --classes two", "'two' is not one of"),
    # train
    ("train listops --set train.epoch=3", "no such key; did you mean train.epochs"),
    ("train listops --set train.epochs=x", "train.epochs: received 'x'; expected an integer"),
    ("train listops --set model.distances=none", "model.left_head_bias is 2.0 and model.distances"),
    ("train listops --set preset=gold", "preset: received the setting preset=gold; "),
    ("train listops --preset gould", "preset is 'gould'; expected one of"),
    ("train listops --seed -1", "seed is -1; expected at least 0 and at most"),
    ("train listops --device gpu", "device is 'gpu'; expected cpu, cuda, cuda:N or auto"),
    (
        "train listops --set data.folder=missing",
        "missing/train.tsv: does not exist; expected a ListOps",
    ),
    (f"train listops --out new {shlex.join(options(data__max_length=4))}", "410"),
    ("train classify", "data.train is none; expected a file: give --train FILE"),
    ("train snli", "fetch it with treelax data snli, or give --from PATH"),
    ("train sst --preset sst-tres", "Did you mean 'sst-tree'?"),
    ("train snli --preset sst-tree", "--preset is 'sst-tree'; expected one of 'snli-"),
    ("train tag --text 1 --label 1", "data: the column '1' is named twice"),
    ("train pair --text x --text x", "data: the column 'x' is named twice"),
    ("train classify --set train.threads=99999", "train.threads is 99999; expected "),
    ("train classify --set seed=99999999999999999999", "seed is 99999999999999999999; expected "),
    (
        "train classify --train long.tsv --dev long.tsv",
        "line 3: received 33,000 words; expected at most 10,000: split it or remove it",
    ),
    (
        "train classify --train three-columns.tsv --dev labels.tsv",
        "line 2: received 3 columns; expected 2: fix it or remove it",
    ),
    (
        "train classify --train a.txt --dev a.txt",
        "expected .tsv, .tab, .csv, .jsonl, .ndjson: rename it",
    ),
    (
        "train pair --train columns.tsv --dev columns.tsv",
        "columns.tsv, line 1: no column 'first'; it has: premise, hypothesis",
    ),
    # analyse and report
    ("analyse missing", "expected the folder of a run"),
    ("analyse classify classify", "RUN: received classify twice; expected different runs"),
    ("analyse classify --split valid", "'--split': "),
    ("analyse classify --limit 0", "--limit"),
    ("analyse classify --label a", "--label: received it without --data"),
    ("analyse chain", "is a saved model, which has no data; expected --data"),
    ("analyse classify --data missing.conllu", "missing.conllu: does not exist; expected"),
    ("analyse classify --data bank.conllu --input xml", "'--input': "),
    ("analyse classify --data bank.conllu --label x", "--label: "),
    ("analyse classify --data bank.conllu --out a.txt", "is a file"),
    ("analyse classify --data a.txt --label x", "a.txt is read as text, which has none"),
    ("analyse classify --data labels.tsv --label x", "'x'"),
    ("analyse classify --data broken.conllu", "broken.conllu, line 1: received 2 columns"),
    ("analyse given --data a.txt", "takes given trees"),
    ("analyse chain none --data bank.conllu", "(model.trees is 'none');"),
    ("report missing", "expected the folder of a run"),
    ("report .", "expected the folder of a run"),
    ("report strange", "task is 'chess'; expected "),
    # figures and tables
    ("figure relaxation --out b.gif", "b.gif: received the suffix '.gif'; expected .svg, .png or"),
    ("figure relaxation --out missing/b.svg", "missing/b.svg: was not written"),
    ("figure listops missing.csv", "missing.csv: cannot be read: No such file or directory"),
    ("figure listops labels.tsv", "labels.tsv: cannot be read as a list of runs (KeyError"),
    ("table listops --rows gold,gould", "--rows is 'gould'; expected one of"),
    ("table listops --set seed=3", "seed: received the setting seed=3; expected --seeds N"),
    ("table listops --set ' model.noise = none' --rows gold,chain,paper-zero", "the rows of the"),
    ("table listops --seeds 0", "--seeds"),
    ("table listops --report", "no run has ended yet; expected at least one: train without --rep"),
    ("table gradients --words 9", "--words"),
    ("table gradients --results a.txt", "is a file"),
    ("table estimators listops --rows immle", "--rows is 'immle'; expected one of 'relaxed'"),
    ("table estimators listops --rows ,", "--rows is ','; expected one of"),
    ("table estimators listops --vectors x", "--vectors: received it for listops; expected it for"),
    ("table sst --rows sst-none", "data.path is none"),
    ("table sst --rows sst-none --from missing", "missing: does not exist"),
    (
        "table sst --rows sst-none --from sst --vectors '[a, b]'",
        "[a, b]: does not exist; expected w",
    ),
    ("table sst --from sst", "takes given trees; expected --set data.trees=FILES"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files and models of the table."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for kind in ("classify", "pair", "tag"):
        saved(folder, kind).rename(folder / kind)
    for trees in ("chain", "none", "intra", "given"):
        saved(folder, trees=trees).rename(folder / trees)
    return folder


def contents(folder):
    return {file: file.is_file() and file.read_bytes() for file in folder.rglob("*")}


@pytest.mark.parametrize(("command", "message"), TABLE, ids=[command for command, _ in TABLE])
def test_one_line_says_what_is_wrong(folder, capsys, monkeypatch, command, message):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("treelax.apps.data.listops.PATIENCE", 300)
    monkeypatch.setenv("TREELAX_CACHE", str(folder / "cache"))
    typed(monkeypatch, "fine\n")
    before = contents(folder)
    words = shlex.split(command)
    commands = ("parse", "predict", "eval", "train", "analyse", "table")  # those with --device
    device = words[0] in commands and words[1:2] != ["gradients"]
    assert message in fail(capsys, *words, device=device)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    assert contents(folder) == before
