"""Losses and the training loop. Usage: python3 train.py WORK OUT [option=value ...] trains all six layers, on an accelerator:
English first, then both languages. WORK holds what prepare.py made and the data. `small.py` trains what ships."""

import copy
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import data
from network import base
from tokens import TOKENS_MAX, TextTokenizer

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SCALE = 20.0
DEFAULTS = {"style": "params", "seed": 1, "english": 120, "both": 200, "size": 384, "negatives": 3, "dropout": 0.1,
            "rate": 3e-5, "japanese_rate": 3e-4, "words_rate": 6e-5, "decay": 0.97, "measure": 50}


class Texts:
    """All texts as rows of tokens, on the device; a text is known by its number."""

    def __init__(self, tokenizer):
        self.tokenizer, self.numbers, self.lists = tokenizer, {}, []

    def add(self, text):
        if text not in self.numbers:
            self.numbers[text] = len(self.lists)
            self.lists.append(self.tokenizer.rows(text))
        return self.numbers[text]

    def freeze(self):
        self.lengths = np.array([len(rows) for rows in self.lists])
        table = np.zeros((len(self.lists), TOKENS_MAX), np.int32)
        for at, rows in enumerate(self.lists):
            table[at, : len(rows)] = rows
        self.table = torch.from_numpy(table).to(DEVICE)
        self.lists = None


class Trainer:
    def __init__(self, work, options):
        self.options = {**DEFAULTS, **options}
        self.style = self.options["style"]
        self.seed(self.options["seed"])
        tools = data.load(work)
        pool, dev = data.dev_sets(tools)
        kept = data.training_tools(tools)
        texts = self.texts = Texts(TextTokenizer(work))
        number = {id(tool): at for at, tool in enumerate(kept)}
        self.whole = np.array([texts.add(t.text(self.style)) for t in kept])
        self.bare = np.array([texts.add(t.text(self.style, module=False)) for t in kept])
        self.in_japanese = np.array([texts.add(t.text(self.style, description=t.sentence_ja)) if t.sentence_ja else -1
                                     for t in kept])
        twins = {}
        self.twin = np.array([twins.setdefault(t.text(module=False).lower(), len(twins)) for t in kept])
        modules = {}
        for at, tool in enumerate(kept):
            modules.setdefault(tool.module, []).append(at)
        self.neighbours = [np.array([o for o in modules[t.module] if self.twin[o] != self.twin[at]])
                           for at, t in enumerate(kept)]
        asked = lambda kinds: [(number[id(t)], texts.add(q)) for t in kept for kind, q, _ in t.questions if kind in kinds]
        self.english = np.array(asked(data.ENGLISH))
        spoken = [(number[id(t)], texts.add(t.sentence_ja)) for t in kept if t.sentence_ja]
        self.japanese = np.array(asked(data.JAPANESE) + spoken)
        self.pairs = np.array([(texts.add(q), texts.add(d)) for q, d in data.pairs(work)])
        self.weak = np.array([(texts.add(q), texts.add(d)) for t in kept for q, d in weak_pairs(t, self.style)])
        first = lambda t: data.first_sentence(t.description)[: data.DESCRIPTION_MAX]
        self.parallel = np.array([(texts.add(t.sentence_ja), texts.add(first(t)))
                                  for t in kept if t.sentence_ja and t.is_parallel])
        self.pool = [texts.add(t.text(self.style)) for t in pool]
        self.dev = {name: [(texts.add(q), at) for q, at, _ in rows] for name, rows in sorted(dev.items())}
        texts.freeze()
        print(*(f"{name} {len(getattr(self, name))}" for name in ("english", "japanese", "parallel", "weak", "pairs")),
              f"texts {len(texts.lengths)}", flush=True)

    def seed(self, seed):
        self.random = np.random.default_rng(seed)
        torch.manual_seed(seed)

    def encode(self, model, numbers):
        """Encodes texts in four groups of about one length, so that little is padding."""
        order = np.argsort(self.texts.lengths[numbers], kind="stable")
        count = 4 if DEVICE == "cuda" else max(1, len(order) // 48)
        chosen = [np.asarray(numbers)[group] for group in np.array_split(order, count) if len(group)]
        rows = [self.texts.table[torch.from_numpy(c).to(DEVICE), : int(self.texts.lengths[c].max())].long() for c in chosen]
        taken, at = model.table(torch.cat([r.flatten() for r in rows]))
        places = torch.split(at, [r.numel() for r in rows])
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            groups = [model(r, F.embedding(place.view(r.shape), taken)) for r, place in zip(rows, places)]
        back = torch.from_numpy(np.argsort(order)).to(DEVICE)
        return torch.cat(groups)[back]

    # Batches: (kind, weight, questions, documents, ids). The document of question i is documents[i]; the rest are
    # negatives. Documents with one id are twins, never negatives of each other.

    def documents(self, tools):
        """Documents as search sees them; some without their module, some with a Japanese description."""
        chance = self.random.random(len(tools))
        found = np.where(chance < 0.1, self.bare[tools], self.whole[tools])
        has_japanese = (chance > 0.85) & (self.in_japanese[tools] >= 0)
        return np.where(has_japanese, self.in_japanese[tools], found)

    def written(self, questions):
        rows = questions[self.random.choice(len(questions), min(self.options["size"], len(questions)), replace=False)]
        tools = [rows[:, 0]]
        for tool in rows[:, 0]:
            others = self.neighbours[tool]
            if len(others):
                count = min(self.options["negatives"], len(others))
                tools.append(self.random.choice(others, count, replace=False))
        tools = np.concatenate(tools)
        return rows[:, 1], self.documents(tools), self.twin[tools]

    def sample(self, pairs, count):
        rows = pairs[self.random.choice(len(pairs), min(count, len(pairs)), replace=False)]
        return rows[:, 0], rows[:, 1], rows[:, 1]

    def batches(self, has_japanese):
        yield "written", 1.0, *self.written(self.english)
        yield "pair", 0.25, *self.sample(self.pairs, self.options["size"] // 3)
        yield "weak", 0.25, *self.sample(self.weak, self.options["size"] // 3)
        if has_japanese:
            yield "written", 1.0, *self.written(self.japanese)
            yield "parallel", 0.5, *self.sample(self.parallel, self.options["size"] * 2 // 3)

    # Losses

    def scores(self, q, d, ids):
        ids = torch.from_numpy(ids).to(DEVICE)
        right = torch.arange(len(q), device=DEVICE)
        is_twin = ids[: len(q), None] == ids[None, :]
        is_twin[right, right] = False
        return (q @ d.T * SCALE).masked_fill(is_twin, -1e4)

    def contrastive(self, scores):
        right = torch.arange(len(scores), device=DEVICE)
        square = scores[:, : len(scores)]
        return (F.cross_entropy(scores, right) + 0.5 * F.cross_entropy(square.T, right)) / 1.5

    def near(self, vectors, targets):
        return ((vectors - targets.detach()) ** 2).sum(-1).mean()

    def learn(self, has_japanese, teacher=None):
        """Losses of one step: questions find their tools; Japanese sentences come near to the teacher's English ones."""
        def losses(model):
            for kind, weight, questions, documents, ids in self.batches(has_japanese):
                q, d = self.encode(model, questions), self.encode(model, documents)
                value = self.contrastive(self.scores(q, d, ids))
                if kind == "parallel":
                    with torch.no_grad():
                        target = self.encode(teacher, documents)
                    value = value + 10 * self.near(q, target)
                yield weight * value
        return losses

    def imitate(self, teachers):
        """Losses of one step: vectors like the first teacher's, rankings like those of all together."""
        def losses(model):
            for _, weight, questions, documents, ids in self.batches(True):
                q, d = self.encode(model, questions), self.encode(model, documents)
                scores = self.scores(q, d, ids)
                with torch.no_grad():
                    targets = [(self.encode(t, questions), self.encode(t, documents)) for t in teachers]
                    soft = torch.stack([self.scores(a, b, ids) for a, b in targets]).mean(0).softmax(-1)
                near = self.near(q, targets[0][0]) + self.near(d, targets[0][1])
                divergence = F.kl_div(scores.log_softmax(-1), soft, reduction="batchmean")
                yield weight * (0.3 * self.contrastive(scores) + 3 * near + divergence)
        return losses

    def run(self, name, model, steps, rates, losses):
        """Trains and returns the running mean of the weights, which generalises better than the last ones. `losses` gives the
        parts of a step's loss."""
        began = time.time()
        model.dropout, mean = self.options["dropout"], copy.deepcopy(model).eval()
        named = {"words": [], "japanese": [], "rest": []}
        for key, parameter in model.named_parameters():
            named[key if key in named else "rest"].append(parameter)
        groups = [{"params": named[key], "lr": rate} for key, rate in rates.items()]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        warm = max(1, steps // 10)
        factor = lambda at: min((at + 1) / warm, 0.02 + 0.98 * (steps - at) / (steps - warm + 1))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        for step in range(1, steps + 1):
            model.train()
            optimizer.zero_grad()
            total = 0.0
            for part in losses(model):
                part.backward()
                total += float(part.detach())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            decay = min(self.options["decay"], step / (step + 10))
            with torch.no_grad():
                torch._foreach_lerp_(list(mean.parameters()), list(model.parameters()), 1 - decay)
            if step % self.options["measure"] == 0 or step == steps:
                found = json.dumps(self.measure(mean))
                print(f"{name} {step} loss {total:.3f} {time.time() - began:.0f} s {found}", flush=True)
        return mean

    @torch.no_grad()
    def measure(self, model):
        """Returns hit@1 and hit@5 of each development set."""
        model.eval()
        texts = np.array(self.pool)
        encode = lambda numbers: torch.cat([self.encode(model, part) for part in np.array_split(numbers, 1 + len(numbers) // 1024)])
        documents, found = encode(texts), {}
        for name, rows in self.dev.items():
            rows = np.array(rows)
            order = (encode(rows[:, 0]) @ documents.T).argsort(dim=1, descending=True)[:, :5].cpu().numpy()
            hits = texts[order] == texts[rows[:, 1]][:, None]
            found[name] = [round(float(hits[:, 0].mean()), 3), round(float(hits.any(1).mean()), 3)]
        return found


def weak_pairs(tool, style):
    """Pairs that a tool's own text gives: its name or a later sentence as the question."""
    if len(tool.description) <= 30:
        return []
    first = data.first_sentence(tool.description)
    rest = tool.description[len(first):].strip()[:200]
    name, module = data.split_identifier(tool.name), data.split_identifier(tool.module)
    found = [(name, first[:200]), (first[:200], f"{module} {name}")]
    return found + ([(rest, tool.text("first"))] if len(rest) > 40 else [])


def large(trainer, work):
    options = trainer.options
    model = base(work).to(DEVICE)
    rates = {"words": options["words_rate"], "japanese": options["words_rate"], "rest": options["rate"]}
    model = trainer.run("english", model, options["english"], rates, trainer.learn(False))
    teacher = copy.deepcopy(model).eval()
    rates["japanese"] = options["japanese_rate"]
    return trainer.run("both", model.train(), options["both"], rates, trainer.learn(True, teacher))


def options_of(arguments):
    """Reads `name=value`; numbers are read as numbers."""
    def value(text):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text
    return {name: value(text) for name, text in (argument.split("=") for argument in arguments)}


def main(work, out, options):
    torch.set_float32_matmul_precision("high")
    trainer = Trainer(work, options)
    model = large(trainer, work)
    torch.save({name: value.half() for name, value in model.state_dict().items()}, out / "large.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), options_of(sys.argv[3:]))
