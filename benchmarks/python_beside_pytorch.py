#!/usr/bin/python3
"""heed's Python module beside a PyTorch module with plain hooks: GPT-2 124M with random weights.

    PYTHONPATH=build/release/python /usr/bin/python3 benchmarks/python_beside_pytorch.py [PART...]

Both programs run on the same machine, in turns, with the same tokens. Parts: hooks (what absent hooks
cost), cache (all activations, 512 tokens, beside heed's own trace and PyTorch), sweep (12 x 12 heads),
memory (all activations and logits, 1,024 tokens, each in a process of its own). [all]

The PyTorch module computes attention as TransformerLens does, with every activation an Identity
that a hook observes: the default points, whose outputs the hooks keep without copying them.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "python"))
from random_checkpoint import write_gpt2  # noqa: E402

LAYERS, HEADS, CHANNELS, VOCABULARY = 12, 12, 768, 50257


def make_torch(folder):
    import torch
    from torch import nn

    import heed
    loaded = pathlib.Path("/proc/self/maps").read_text()
    if not any(name in loaded for name in ("openblas", "libmkl", "libblis")):
        sys.exit("PyTorch multiplies with the reference BLAS here, which is many times slower: install "
                 "libopenblas0-pthread")
    torch.set_num_threads(heed.threads())

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(CHANNELS))
            self.bias = nn.Parameter(torch.zeros(CHANNELS))
            self.hook_scale, self.hook_normalized = nn.Identity(), nn.Identity()

        def forward(self, x):
            x = x - x.mean(-1, keepdim=True)
            scale = self.hook_scale((x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt())
            return self.hook_normalized(x / scale) * self.weight + self.bias

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn = nn.Linear(CHANNELS, 3 * CHANNELS)
            self.c_proj = nn.Linear(CHANNELS, CHANNELS)
            for name in ("q", "k", "v", "attn_scores", "pattern", "z"):
                setattr(self, "hook_" + name, nn.Identity())

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.c_attn(x).view(b, t, 3, HEADS, -1).unbind(2)
            q, k, v = self.hook_q(q), self.hook_k(k), self.hook_v(v)
            scores = torch.einsum("bthd,bshd->bhts", q, k) / (q.shape[-1] ** 0.5)
            mask = torch.ones(t, t, dtype=torch.bool).triu(1)
            scores = self.hook_attn_scores(scores.masked_fill(mask, float("-inf")))
            pattern = self.hook_pattern(scores.softmax(-1))
            z = self.hook_z(torch.einsum("bhts,bshd->bthd", pattern, v))
            return self.c_proj(z.reshape(b, t, CHANNELS))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_fc = nn.Linear(CHANNELS, 4 * CHANNELS)
            self.c_proj = nn.Linear(4 * CHANNELS, CHANNELS)
            self.hook_pre, self.hook_post = nn.Identity(), nn.Identity()

        def forward(self, x):
            pre = self.hook_pre(self.c_fc(x))
            return self.c_proj(self.hook_post(nn.functional.gelu(pre, approximate="tanh")))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2, self.mlp = Norm(), Attention(), Norm(), FeedForward()
            for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post"):
                setattr(self, "hook_" + name, nn.Identity())

        def forward(self, x):
            x = self.hook_resid_pre(x)
            x = self.hook_resid_mid(x + self.hook_attn_out(self.attn(self.ln_1(x))))
            return self.hook_resid_post(x + self.hook_mlp_out(self.mlp(self.ln_2(x))))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(VOCABULARY, CHANNELS), nn.Embedding(1024, CHANNELS)
            self.hook_embed, self.hook_pos_embed = nn.Identity(), nn.Identity()
            self.h = nn.ModuleList(Block() for _ in range(LAYERS))
            self.ln_f = Norm()

        def forward(self, tokens):
            x = self.hook_embed(self.wte(tokens)) + \
                self.hook_pos_embed(self.wpe(torch.arange(tokens.shape[1])))
            for block in self.h:
                x = block(x)
            return self.ln_f(x) @ self.wte.weight.T

    model = Gpt2().eval()
    weights = read_weights(folder)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.from_numpy(weights[name].copy())
            is_conv = any(part in name for part in ("c_attn.weight", "c_proj.weight", "c_fc.weight"))
            parameter.copy_(values.T if is_conv else values)
    return torch, model


def read_weights(folder):
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    import safetensors_by_hand
    return safetensors_by_hand.read(folder / "model.safetensors")


def torch_cache(torch, model, tokens):
    """All activations by hooks, and the logits."""
    kept, handles = {}, []
    for name, module in model.named_modules():
        if name.split(".")[-1].startswith("hook_"):
            handles.append(module.register_forward_hook(
                lambda _, __, output, name=name: kept.__setitem__(name, output)))
    with torch.no_grad():
        logits = model(torch.from_numpy(tokens))
    for handle in handles:
        handle.remove()
    return logits, kept


def torch_sweep(torch, model, clean, corrupted, answer, wrong):
    """The logit difference with each head's z patched, one forward pass a cell."""
    kept = {}
    handles = [block.attn.hook_z.register_forward_hook(
        lambda _, __, output, layer=layer: kept.__setitem__(layer, output))
        for layer, block in enumerate(model.h)]
    with torch.no_grad():
        model(torch.from_numpy(clean))
    for handle in handles:
        handle.remove()
    found = np.zeros((LAYERS, HEADS))
    for layer, block in enumerate(model.h):
        for head in range(HEADS):
            def patch(_, __, output, layer=layer, head=head):
                output = output.clone()
                output[:, :, head] = kept[layer][:, :, head]
                return output
            handle = block.attn.hook_z.register_forward_hook(patch)
            with torch.no_grad():
                logits = model(torch.from_numpy(corrupted))[0, -1]
            handle.remove()
            found[layer, head] = float(logits[answer] - logits[wrong])
    return found


def seconds(compute):
    begin = time.perf_counter()
    compute()
    return time.perf_counter() - begin


def in_turns(repeats, *computes):
    """Medians of times in seconds; each runs once before."""
    times = [[] for _ in computes]
    for repeat in range(repeats + 1):
        for compute, all_times in zip(computes, times):
            taken = seconds(compute)
            if repeat > 0:
                all_times.append(taken)
    return [statistics.median(each) for each in times]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def measure_memory(folder, which):
    """Bytes that the process grows by while it holds a cache of 1,024 tokens and their logits."""
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (1, 1024))
    if which == "heed":
        import heed
        model = heed.load(str(folder))
        model(tokens[:, :8])
        before = resident()
        held = model.run_with_cache(tokens)
    else:
        torch, model = make_torch(folder)
        torch_cache(torch, model, tokens[:, :8])
        before = resident()
        held = torch_cache(torch, model, tokens)
    print(resident() - before, len(held[1]))


def main(parts):
    import heed
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_gpt2(folder)
        if "memory" in parts:
            grown = {}
            for which in ("heed", "pytorch"):
                output = subprocess.run([sys.executable, __file__, "--memory", name, which],
                                        check=True, capture_output=True, text=True).stdout.split()
                grown[which] = int(output[0])
            print(f"memory of a full cache and logits, T = 1,024: heed {grown['heed'] / 2**20:.0f} "
                  f"MiB, PyTorch {grown['pytorch'] / 2**20:.0f} MiB: "
                  f"{grown['heed'] / grown['pytorch']:.3f}")
        if not {"hooks", "cache", "sweep"} & set(parts):
            return
        model = heed.load(name)
        random = np.random.default_rng(0)
        tokens = random.integers(0, VOCABULARY, (1, 512))
        plain = heed.interventions.apply(model)
        if "hooks" in parts:
            pair = in_turns(9, lambda: plain._edited.all_logits(tokens.astype(np.int32)[0]),
                            lambda: model(tokens))
            print(f"logits of 512 tokens: C++ facade {pair[0] * 1e3:.1f} ms, the module without hooks "
                  f"{pair[1] * 1e3:.1f} ms: {pair[1] / pair[0]:.3f}")
        if "cache" in parts:
            torch, module = make_torch(folder)
            logits, cache = model.run_with_cache(tokens)
            other, kept = torch_cache(torch, module, tokens)
            difference = np.abs(logits - other.numpy()).max() / np.abs(logits).max()
            scores = np.abs(np.array(cache["pattern", 5]) - kept["h.5.attn.hook_pattern"].numpy())
            print(f"PyTorch's logits differ by {difference:.1e} of the largest, a pattern by "
                  f"{scores.max():.1e}")
            points = list(cache)
            times = in_turns(3, lambda: model.run_with_cache(tokens),
                             lambda: plain.trace(tokens, points),
                             lambda: torch_cache(torch, module, tokens), lambda: read_all(model, tokens))
            print(f"full cache of 512 tokens: heed {times[0] * 1e3:.0f} ms (with every value read "
                  f"{times[3] * 1e3:.0f}), C++ trace {times[1] * 1e3:.0f} ms, PyTorch "
                  f"{times[2] * 1e3:.0f} ms; PyTorch / heed {times[2] / times[0]:.2f} "
                  f"({times[2] / times[3]:.2f}), heed / trace {times[0] / times[1]:.2f} "
                  f"({times[3] / times[1]:.2f})")
        if "sweep" in parts:
            torch, module = make_torch(folder)
            clean, corrupted = random.integers(0, VOCABULARY, (2, 1, 16))
            sweep = lambda: heed.patching.head_out(model, clean, corrupted, 5, 7)  # noqa: E731
            theirs = lambda: torch_sweep(torch, module, clean, corrupted, 5, 7)  # noqa: E731
            difference = np.abs(sweep().values - theirs()).max()
            times = in_turns(3, sweep, theirs)
            print(f"12 x 12 heads of 16 tokens: heed {times[0]:.3f} s, PyTorch {times[1]:.3f} s: "
                  f"{times[1] / times[0]:.1f} times; values differ by {difference:.1e}")


def read_all(model, tokens):
    _, cache = model.run_with_cache(tokens)
    return [np.asarray(cache[name]) for name in cache]


if __name__ == "__main__":
    os.environ.pop("OPENBLAS_CORETYPE", None)
    if sys.argv[1:2] == ["--memory"]:
        measure_memory(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        main(sys.argv[1:] or ["hooks", "cache", "sweep", "memory"])
