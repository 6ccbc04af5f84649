"""Makes a small encoder from large ones and writes it quantised.
Usage: python3 distill.py WORK OUT layers=0,2,5 name=small LARGE.pt [LARGE.pt ...]

The first large encoder gives the vectors to come near to; all of them together give the rankings."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from network import base
from train import DEVICE, Trainer, options_of


def quantise(array):
    """Returns rows of signed bytes and the scale of each row."""
    scale = np.maximum(np.abs(array).max(1, keepdims=True), 1e-12) / 127
    return np.rint(array / scale).astype(np.int8), scale[:, 0].astype(np.float32)


def save(model, out, name):
    """Writes every matrix as bytes with a scale per row, and every vector as 32-bit floats. Returns what was written
    as weights."""
    arrays, state = {}, {}
    for key, value in model.state_dict().items():
        array = value.float().cpu().numpy()
        if array.ndim == 2 and key != "positions":
            arrays[f"q/{key}"], arrays[f"s/{key}"] = quantise(array)
            state[key] = torch.from_numpy(arrays[f"q/{key}"] * arrays[f"s/{key}"][:, None])
        else:
            arrays[f"f/{key}"], state[key] = array, torch.from_numpy(array)
    for part in ("words", "japanese"):
        np.savez_compressed(out / f"{name}-{part}.npz", table=arrays.pop(f"q/{part}"))
    np.savez_compressed(out / f"{name}-network.npz", **arrays)
    return state


def main(work, out, options, larges):
    torch.set_float32_matmul_precision("high")
    options = {"layers": "0,2,5", "name": "small", "distill": 400, "distill_rate": 2e-4, "dropout": 0.0, **options}
    trainer = Trainer(work, options)
    teachers = []
    for path in larges:
        teacher = base(work)
        teacher.load_state_dict({k: v.float() for k, v in torch.load(path, map_location="cpu").items()})
        teachers.append(teacher.to(DEVICE).eval())
    print("teachers", *(json.dumps(trainer.measure(t)) for t in teachers), flush=True)
    keep = [int(at) for at in str(options["layers"]).split(",")]
    rate = options["distill_rate"]
    rates = {"words": 2 * rate, "japanese": 2 * rate, "rest": rate}
    student = teachers[0].shallow(keep)
    student = trainer.run(options["name"], student, options["distill"], rates, trainer.imitate(teachers))
    student.load_state_dict(save(student, out, options["name"]))
    print("quantised", json.dumps(trainer.measure(student)), flush=True)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[3:] if "=" in argument]
    main(Path(sys.argv[1]), Path(sys.argv[2]), options_of(given), [a for a in sys.argv[3:] if "=" not in a])
