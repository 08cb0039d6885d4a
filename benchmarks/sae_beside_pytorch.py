#!/usr/bin/python3
"""Training of a sparse autoencoder beside a plain PyTorch loop: the same rows, the same start, TopK,
Adam, decoder rows of length 1, in f32 on all cores.

    PYTHONPATH=build/release/python /usr/bin/python3 benchmarks/sae_beside_pytorch.py
    … --d-in 768 --d-sae 24576 -k 32 --batch 2048 --steps 6 --rounds 2
    … --quality --d-sae 512 -k 8 --batch 256 --steps 200 --lr 2e-3    what the result is worth

Each program runs in a process of its own, in turns; times, and processor time, which says more where
other programs run, are medians of steps after two that are
not counted, memory the peak of the process less what it held before the first step.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROWS = 16384


def rows_of(d_in, seed=0, planted=2048, active=8):
    """Sums of a few of many random directions, and a little noise."""
    generator = np.random.default_rng(seed)
    directions = generator.standard_normal((planted, d_in)).astype(np.float32)
    rows = 0.3 * generator.standard_normal((ROWS, d_in)).astype(np.float32)
    for _ in range(active):
        chosen = generator.integers(0, planted, ROWS)
        rows += directions[chosen] * generator.random((ROWS, 1), np.float32)
    return rows / np.sqrt((rows**2).mean())


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed(step, rows, options):
    """Seconds and losses of steps, and the memory that they took."""
    seconds, processor, losses, before = [], [], [], peak()
    for number in range(options.steps + 2):
        first = number * options.batch % (ROWS - options.batch + 1)
        batch = rows[first:first + options.batch]
        begin, used = time.perf_counter(), time.process_time()
        losses.append(float(step(batch)))
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    return {"seconds": seconds[2:], "processor": processor[2:], "losses": losses,
            "bytes": peak() - before}


def with_heed(options):
    import heed
    rows = rows_of(options.d_in)
    first = rows[:options.batch]
    trainer = None

    def step(batch):
        nonlocal trainer
        if trainer is None:
            trainer = heed.sae.Trainer(options.d_sae, first, k=options.k, lr=options.lr, warmup=0,
                                       decay=0, auxiliary_coefficient=0, steps=1000)
        return trainer.step(batch)["loss"]

    return timed(step, rows, options)


def torch_loop(options, rows):
    """(step, weights): a step on a batch, and the parameters once there was one."""
    import torch
    loaded = pathlib.Path("/proc/self/maps").read_text()
    if not any(name in loaded for name in ("openblas", "libmkl", "libblis")):
        sys.exit("PyTorch multiplies with the reference BLAS here, which is many times slower: install "
                 "libopenblas0-pthread")
    state = {}

    def begin():
        width = rows.shape[1]
        generator = torch.Generator().manual_seed(0)
        decoder = torch.randn(options.d_sae, width, generator=generator)
        decoder /= decoder.norm(dim=1, keepdim=True)
        state["W_dec"] = torch.nn.Parameter(decoder)
        state["W_enc"] = torch.nn.Parameter(decoder.T.clone())
        state["b_enc"] = torch.nn.Parameter(torch.zeros(options.d_sae))
        state["b_dec"] = torch.nn.Parameter(rows[:options.batch].mean(0))
        state["adam"] = torch.optim.Adam(
            [state[name] for name in ("W_enc", "W_dec", "b_enc", "b_dec")], lr=options.lr)

    def step(batch):
        if not state:
            begin()
        state["adam"].zero_grad(set_to_none=True)
        pre = (batch - state["b_dec"]) @ state["W_enc"] + state["b_enc"]
        values, indices = torch.topk(pre, options.k, dim=-1)
        acts = torch.zeros_like(pre).scatter(-1, indices, torch.relu(values))
        out = acts @ state["W_dec"] + state["b_dec"]
        loss = (out - batch).pow(2).sum(-1).mean()
        loss.backward()
        with torch.no_grad():
            decoder = state["W_dec"]
            along = (decoder.grad * decoder).sum(1, keepdim=True)
            decoder.grad -= along * decoder
            state["adam"].step()
            decoder /= decoder.norm(dim=1, keepdim=True)
        return loss

    return step, state


def with_pytorch(options):
    import torch
    rows = torch.from_numpy(rows_of(options.d_in))
    return timed(torch_loop(options, rows)[0], rows, options)


def quality(options):
    """Both on the activations of starter, and the loss that each recovers on other stories."""
    import heed
    import torch
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "golden"))
    import safetensors_by_hand
    model, point = heed.load("starter"), "blocks.2.hook_resid_pre"
    text = "\n\n".join(heed.microworld.story(1, index)["text"] for index in range(1200))
    other = "\n\n".join(heed.microworld.story(2, index)["text"] for index in range(200))
    tokens = model.to_tokens(text)[0]
    windows = tokens[:len(tokens) // 64 * 64].reshape(-1, 64)
    rows = np.concatenate([model.run_with_cache(windows[at:at + 32], names_filter=point,
                                                return_type=None)[1][point].reshape(-1, model.cfg.d_model)
                           for at in range(0, len(windows), 32)])
    scale = 1 / np.sqrt((rows**2).mean())
    order = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        heed.sae.train(model, point, options.d_sae, text=text, out=f"{folder}/heed", k=options.k,
                       steps=options.steps, batch=options.batch, lr=options.lr, context_size=64,
                       buffer=8192, evaluated_tokens=0, warmup=0, decay=0)
        step, state = torch_loop(options, torch.from_numpy(rows * scale))
        for _ in range(options.steps):
            step(torch.from_numpy(rows[order.integers(0, len(rows), options.batch)] * scale))
        weights = {name: state[name].detach().numpy() for name in ("W_enc", "W_dec", "b_enc", "b_dec")}
        weights |= {"W_enc": weights["W_enc"] * np.float32(scale), "W_dec": weights["W_dec"] / np.float32(scale),
                    "b_dec": weights["b_dec"] / np.float32(scale)}
        os.mkdir(f"{folder}/pytorch")
        with open(f"{folder}/pytorch/cfg.json", "w", encoding="utf-8") as file:
            json.dump({"architecture": "topk", "k": options.k, "d_in": model.cfg.d_model,
                       "d_sae": options.d_sae, "hook_name": point}, file)
        safetensors_by_hand.write(f"{folder}/pytorch/sae_weights.safetensors", weights)
        for name in ("heed", "pytorch"):
            found = heed.sae.evaluate(model, heed.sae.load(f"{folder}/{name}"), other, 8192, 64)
            print(f"{name:8} loss recovered {100 * found.loss_recovered:.1f} %, explained variance "
                  f"{found.explained_variance:.3f}, L0 {found.l0:.1f}, {found.used_features} features used")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--d-in", type=int, default=768)
    parser.add_argument("--d-sae", type=int, default=24576)
    parser.add_argument("-k", type=int, default=32)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--program", choices=["heed", "pytorch"])
    options = parser.parse_args()
    if options.quality:
        quality(options)
        return
    if options.program:
        print(json.dumps({"heed": with_heed, "pytorch": with_pytorch}[options.program](options)))
        return
    found = {"heed": [], "pytorch": []}
    for _ in range(options.rounds):
        for name in found:
            output = subprocess.run([sys.executable, __file__, "--program", name, *sys.argv[1:]],
                                    check=True, capture_output=True, text=True).stdout
            found[name].append(json.loads(output))
    print(f"{options.d_in} -> {options.d_sae}, TopK {options.k}, batch {options.batch}, "
          f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name, runs in found.items():
        seconds = [second for run in runs for second in run["seconds"]]
        processor = statistics.median(second for run in runs for second in run["processor"])
        print(f"{name:8} {statistics.median(seconds):7.3f} s a step (from {min(seconds):.3f} to "
              f"{max(seconds):.3f}), {processor:.3f} s of the processors, "
              f"{runs[0]['bytes'] / 2**20:.0f} MiB, loss "
              f"{runs[0]['losses'][0]:.3f} -> {runs[0]['losses'][-1]:.3f}")


if __name__ == "__main__":
    main()
