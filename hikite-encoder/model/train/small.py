"""Trains the encoder that ships, on a processor. Usage: python3 small.py WORK OUT [option=value ...].

Some layers of the published model learn both languages at once: each step takes tools with an English and a Japanese
question of one kind, so that a document is encoded once for both."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

import data
from distill import save
from network import base
from train import DEVICE, Trainer, options_of

OPTIONS = {"layers": "0,2,5", "steps": 300, "size": 128, "negatives": 2, "dropout": 0.1, "rate": 1e-4, "words_rate": 2e-4,
           "japanese_rate": 6e-4, "decay": 0.97, "measure": 60, "name": "small"}


class SmallTrainer(Trainer):
    def __init__(self, work, options):
        super().__init__(work, options)
        rows = []
        for at, tool in enumerate(data.training_tools(data.load(work))):
            asked = {kind: self.texts.numbers[text] for kind, text, _ in tool.questions}
            rows += [(at, asked[en], asked[ja]) for en, ja in zip(data.ENGLISH, data.JAPANESE) if en in asked and ja in asked]
        self.both = np.array(rows)

    def losses(self, model):
        size = self.options["size"]
        rows = self.both[self.random.choice(len(self.both), size, replace=False)]
        tools = [rows[:, 0]]
        for tool in rows[:, 0]:
            others = self.neighbours[tool]
            if len(others):
                tools.append(self.random.choice(others, min(self.options["negatives"], len(others)), replace=False))
        tools = np.concatenate(tools)
        pairs, weak = self.sample(self.pairs, size // 4), self.sample(self.weak, size // 4)
        parallel = self.sample(self.parallel, size // 3)
        parts = [rows[:, 1], rows[:, 2], self.documents(tools), *pairs[:2], *weak[:2], *parallel[:2]]
        found = torch.split(self.encode(model, np.concatenate(parts)), [len(part) for part in parts])
        english, japanese, documents, pq, pd, wq, wd, sj, se = found
        ids = self.twin[tools]
        loss = self.contrastive(self.scores(english, documents, ids)) + self.contrastive(self.scores(japanese, documents, ids))
        loss = loss + 0.25 * self.contrastive(self.scores(pq, pd, pairs[2])) + 0.25 * self.contrastive(self.scores(wq, wd, weak[2]))
        loss = loss + 0.25 * self.contrastive(self.scores(sj, se, parallel[2]))
        yield loss + self.near(japanese, english) + self.near(sj, se)


def main(work, out, options):
    options = {**OPTIONS, **options}
    trainer = SmallTrainer(work, options)
    model = base(work).shallow([int(at) for at in str(options["layers"]).split(",")]).to(DEVICE)
    rates = {"words": options["words_rate"], "japanese": options["japanese_rate"], "rest": options["rate"]}
    model = trainer.run(options["name"], model, options["steps"], rates, trainer.losses)
    torch.save({name: value.half() for name, value in model.state_dict().items()}, out / f"{options['name']}.pt")
    model.load_state_dict(save(model, out, options["name"]))
    print("quantised", json.dumps(trainer.measure(model)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), options_of(sys.argv[3:]))
