#!/usr/bin/env python3
"""Makes encoder.bin from what training wrote. Usage: python3 build.py WORK TRAINED NAME.

WORK holds tokenizer.json and japanese.json (`train/prepare.py`), TRAINED the files NAME-words.npz, NAME-japanese.npz and
NAME-network.npz (`train/small.py`). README.md says what is in the file."""

import json
import struct
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
MAGIC = b"hikite encoder 2"
DENSE = ("query", "key", "value", "mix", "mix_norm", "up", "down", "norm")


def sorted_pieces(work):
    """Returns, for word pieces and for Japanese pieces, the texts in the order of their bytes and their former places."""
    words = json.loads((work / "tokenizer.json").read_text())["model"]["vocab"]
    japanese = json.loads((work / "japanese.json").read_text())
    scores = np.array([score for _, score in japanese], np.float32)
    by_bytes = lambda pieces: sorted((piece.encode(), at) for piece, at in pieces)
    return by_bytes(words.items()), by_bytes((piece, at) for at, (piece, _) in enumerate(japanese)), scores


def string_list(pieces):
    ends = np.cumsum([len(text) for text, _ in pieces]).astype("<u4")
    return struct.pack("<I", len(pieces)) + ends.tobytes() + b"".join(text for text, _ in pieces)


def floats(array):
    return np.ascontiguousarray(array, "<f4").tobytes()


def network(arrays):
    parts = [floats(arrays["f/positions"]), norm(arrays, "norm")]
    for layer in range(sum(key.endswith("query.weight") and key[0] == "q" for key in arrays)):
        for part in DENSE:
            name = f"layers.{layer}.{part}"
            if part.endswith("norm"):
                parts.append(norm(arrays, name))
            else:
                parts += [floats(arrays[f"s/{name}.weight"]), floats(arrays[f"f/{name}.bias"]),
                          np.ascontiguousarray(arrays[f"q/{name}.weight"]).tobytes()]
    return b"".join(parts)


def norm(arrays, name):
    return floats(arrays[f"f/{name}.weight"]) + floats(arrays[f"f/{name}.bias"])


def main(work, trained, name):
    words, japanese, scores = sorted_pieces(work)
    arrays = dict(np.load(trained / f"{name}-network.npz"))
    order = {"words": [at for _, at in words], "japanese": [at for _, at in japanese]}
    table = [np.load(trained / f"{name}-{part}.npz")["table"][order[part]] for part in order]
    scales = [arrays[f"s/{part}"][order[part]] for part in order]
    parts = [string_list(words), string_list(japanese), floats(scores[order["japanese"]]),
             floats(np.concatenate(scales)), np.concatenate(table).tobytes(), network(arrays)]
    lengths = b"".join(struct.pack("<I", len(part)) for part in parts)
    (HERE / "encoder.bin").write_bytes(MAGIC + lengths + b"".join(parts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
