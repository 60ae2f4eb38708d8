"""Settings of experiments on sentences: presets, TOML, and what is refused."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from treelax.apps.tasks.text.config import (
    DataConfig,
    ModelConfig,
    SentenceSettings,
    TextConfig,
    TrainConfig,
)
from treelax.apps.tasks.text.presets import PRESETS, preset
from treelax.apps.training.config import from_toml, to_toml
from treelax.errors import InputError

CHAIN = ModelConfig(output="chain")
OWN = ("classify", "pair", "tag")
PAPER = [name for name in PRESETS if name not in OWN and "-tuned-" not in name]


def test_there_is_a_preset_for_every_row_of_the_tables():
    rows = ("none", "intra", "chain-1", "chain-2", "heads-1", "heads-2", "tree-1", "tree-2")
    sst_rows = ("none", "chain", "heads", "given", "nonprojective", "tree")
    families = {"snli": rows, "multinli": rows, "sst": sst_rows}
    for recipe in ("", "tuned-"):
        for family, names in families.items():
            assert {f"{family}-{recipe}{name}" for name in names} <= PRESETS.keys()
    assert len(PRESETS) == 2 * (2 * len(rows) + len(sst_rows)) + len(OWN)
    assert PRESETS["multinli-tree-2"][1] == "MultiNLI: latent tree, 2 GCN"
    for name in PRESETS:
        config = preset(name)
        assert config.preset == name
        assert from_toml(TextConfig, to_toml(config), "config.toml") == config


@pytest.mark.parametrize("name", PAPER)
def test_presets_are_trained_as_in_the_paper(name):
    config = preset(name)
    family, _, row = name.partition("-")
    train = config.train
    assert (train.epochs, train.batch_size, train.learning_rate) == (200, 64, 1e-4)
    assert (train.schedule, train.patience, train.decay, train.clip) == ("plateau", 5, 0.9, 5.0)
    assert train.updates == (100 if family == "sst" else 8500)
    assert config.kind == ("classify" if family == "sst" else "pair")
    assert config.data.format == family
    assert config.model.dropout == 0.2
    trees = row.split("-")[0]
    latent = {"tree": "projective", "nonprojective": "nonprojective"}
    assert config.model.trees == ("latent" if trees in latent else trees)
    assert config.model.structure == latent.get(trees, "projective")


@pytest.mark.parametrize("name", PAPER)
def test_tuned_rows_are_the_paper_s_models_trained_otherwise(name):
    family, _, row = name.partition("-")
    paper, tuned = preset(name), preset(f"{family}-tuned-{row}")
    # the tuned recipe of MultiNLI has all of the mixed corpus in every epoch
    share = 1.0 if family == "multinli" else paper.data.mix_share
    assert (tuned.kind, tuned.data) == (paper.kind, replace(paper.data, mix_share=share))
    changed = {
        field.name
        for field in fields(ModelConfig)
        if getattr(paper.model, field.name) != getattr(tuned.model, field.name)
    }
    # what changes no layer's size, but for the distance bias of SST
    of_training = {"word_scale", "dropout", "input_dropout", "word_dropout", "left_head_bias"}
    assert changed <= of_training | {"distances"}
    assert (tuned.model.left_head_bias > 0) == (tuned.model.trees in ("latent", "heads"))
    assert tuned.train.schedule == "cosine"
    # the baseline is trained by the recipe of its family, but for the decay that dev chose for it
    baseline = preset(f"{family}-tuned-none").train
    assert replace(tuned.train, weight_decay=baseline.weight_decay) == baseline


def test_sst_is_as_in_the_appendix():
    model = preset("sst-tree").model
    assert (model.encoder, model.encoder_size, model.encoder_stacks) == ("bilstm", 100, 1)
    assert (model.scorer_size, model.scorer_layers, model.distances) == (300, 1, None)
    assert (model.gcn_layers, model.dense, model.output_size) == (1, False, 300)
    assert (model.learned_words, model.projection_size) == (101, None)
    assert not preset("sst-tree").data.null


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (ModelConfig, {"trees": "gold"}, "model.trees"),
        (ModelConfig, {"projection_size": 0}, "model.projection_size is 0"),
        (ModelConfig, {"gcn_dropout": 1.5}, "model.gcn_dropout is 1.5; expected at least 0"),
        (ModelConfig, {"left_head_bias": 1.0, "distances": None}, "model.distances none"),
        (ModelConfig, {"trees": "heads", "single_root": True}, "model.single_root is true"),
        (
            ModelConfig,
            {"structure": "binary", "left_head_bias": 2.0},
            "model.left_head_bias is 2.0 and model.structure binary; expected 0",
        ),
        (ModelConfig, {"structure": "binary", "trees": "chain"}, "model.trees is chain .* latent"),
        (ModelConfig, {"encoder": "transformer"}, "model.pretrained none; expected both"),
        (DataConfig, {"unusable": "skip"}, "data.unusable"),
        (DataConfig, {"text": ("a", "b", "c")}, "expected the name of one column, or two"),
        (DataConfig, {"mix": "snli", "format": "sst"}, "data.mix is snli and data.format sst"),
        (DataConfig, {"trees": "trees.conllu"}, r"expected a name with \{split\} in it"),
        (
            DataConfig,
            {"trees": "{split}.conllu", "mix": "snli", "format": "multinli"},
            "there are no trees of what is mixed in",
        ),
        (DataConfig, {"text": ("a",), "label": "a"}, "the column 'a' is named twice"),
        (DataConfig, {"format": "tagging", "word": "1", "tag": "1"}, "'1' is named twice"),
        (TrainConfig, {"epochs": 3, "discrete_epochs": 4}, "discrete_epochs is 4; .* at most 3"),
        (TrainConfig, {"updates": 2_000_000}, "train.updates is 2000000; .* at most 1,562,500"),
        (TextConfig, {"kind": "pairs"}, "kind"),
        (TextConfig, {"seed": -1}, "seed is -1"),
        (TextConfig, {"model": CHAIN}, "model.output is chain and kind pair; expected softmax"),
        (SentenceSettings, {"model": CHAIN}, "model.output is chain and kind classify"),
        (
            TextConfig,
            {"kind": "tag", "model": CHAIN, "train": TrainConfig(label_smoothing=0.1)},
            "model.output is chain, train.label_smoothing 0.1 and train.consistency 0.0; expected 0",
        ),
        (TextConfig, {"data": DataConfig(classes="five")}, "data.classes is five and data.format"),
    ],
)
def test_what_is_refused(section, values, message):
    with pytest.raises(InputError, match=message) as caught:
        section(**values)
    assert "\n" not in str(caught.value)
