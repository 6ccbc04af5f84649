"""The reference tokenizer: NFKC, then WordPiece for Latin text and a unigram model for runs of kana and kanji."""

import json
import re
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import Unigram

JAPANESE = re.compile(r"[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
UNKNOWN, START, END = 100, 101, 102
WORD_PIECES = 30522
TOKENS_MAX = 96


class TextTokenizer:
    """Turns a text into rows of the embedding table."""

    def __init__(self, folder):
        folder = Path(folder)
        self.words = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.words.no_padding()
        self.words.no_truncation()
        pieces = json.loads((folder / "japanese.json").read_text())
        self.japanese = Tokenizer(Unigram([("<unk>", 0.0)] + [(piece, score) for piece, score in pieces], unk_id=0))

    def rows(self, text):
        text = unicodedata.normalize("NFKC", text)
        rows, last = [START], 0
        for run in JAPANESE.finditer(text):
            rows += self.latin(text[last : run.start()])
            ids = self.japanese.encode(run.group()).ids
            rows += [UNKNOWN if piece == 0 else WORD_PIECES + piece - 1 for piece in ids]
            last = run.end()
        rows += self.latin(text[last:])
        return rows[: TOKENS_MAX - 1] + [END]

    def latin(self, text):
        return self.words.encode(text, add_special_tokens=False).ids if text.strip() else []
