#!/usr/bin/env python3
"""Makes reference.jsonl: what the reference tokenizer and the unquantised network (PyTorch) make of texts.
Usage: python3 reference.py WORK WEIGHTS.pt

2,000 texts: tools, questions and sentences of both languages, and odd ones. Each line has a text and its rows; every
twentieth has its vector, too (signed bytes, in base64)."""

import base64
import json
import random
import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "train"))

import data  # noqa: E402
from build import sorted_pieces  # noqa: E402
from network import base  # noqa: E402
from tokens import WORD_PIECES, TextTokenizer  # noqa: E402

COUNT = 2000
VECTOR_STEP = 20
ODD = """
SELECT name, count(*) FROM users WHERE age > 21 GROUP BY name ORDER BY 2 DESC;
https://example.org/path?query=1&other=two#fragment
getHTTPResponseCode XMLHttpRequest parseJSONFromString
a
!
ﾌｧｲﾙを検索 ＡＰＩ　ﾃｽﾄ
使用必应搜索指定的关键词，并返回搜索结果列表
搜尋附近的餐廳
파일의 내용을 읽어 주세요
Прочитай содержимое файла и покажи мне
Wie wird das Wetter morgen in München?
Créer un nouveau fichier dans le dossier partagé
Yeni bir dosya oluştur İstanbul
Kubernetes の pod を list して logs を見たい
deploy the app 🚀 then celebrate 🎉🎉
x² + y² ≤ z², α→β, 100 €, ½ cup, №5, ™
ﬁle ﬂow Ⅳ ㌔ ㈱ ①
e\u0301te\u0301 versus \u00e9t\u00e9, zero\u200bwidth\u00a0space
Ελληνικά ΣΊΣΥΦΟΣ straße ẞ ǅ
「見積書」を〜ー々〆ヶ月間、保存する。
\u0000\u0007tab\there\u2028line\ufffd\ue000private
ภาษาไทย العربية עברית हिन्दी
"""


def texts(work):
    tools = list(data.load(work).values())
    pool = [t.text("params") for t in tools] + [t.sentence_ja for t in tools if t.sentence_ja]
    pool += [question for t in tools for _, question, _ in t.questions]
    # Paths of people's folders stay out of the repository.
    pool = sorted({text for text in pool if "/home/" not in text and "/Users/" not in text and "/root" not in text})
    odd = [line.encode().decode("unicode_escape") if "\\u" in line else line for line in ODD.strip().split("\n")]
    odd.append("This tool reads one file after the other. " * 20)
    odd.append("a" * 300)
    return odd + random.Random(7).sample(pool, COUNT - len(odd))


@torch.no_grad()
def main(work, weights):
    tokenizer = TextTokenizer(work)
    words, japanese, _ = sorted_pieces(work)
    place = {at: row for row, (_, at) in enumerate(words)}
    place.update({WORD_PIECES + at: WORD_PIECES + row for row, (_, at) in enumerate(japanese)})
    state = {key: value.float() for key, value in torch.load(weights, map_location="cpu").items()}
    model = base(work).shallow(range(1 + max(int(key.split(".")[1]) for key in state if key.startswith("layers."))))
    model.load_state_dict(state)
    model.eval()
    with (HERE / "reference.jsonl").open("w") as file:
        for at, text in enumerate(texts(work)):
            rows = tokenizer.rows(text)
            case = {"text": text, "rows": [place[row] for row in rows]}
            if at % VECTOR_STEP == 0:
                vector = model(torch.tensor([rows]))[0].numpy()
                case["vector"] = base64.b64encode(np.rint(vector * 127 / np.abs(vector).max()).astype(np.int8)).decode()
            file.write(json.dumps(case, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
