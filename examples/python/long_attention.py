"""65,536 tokens of attention: a layer's pattern at that length would have 17 GB a head, and any part
of it is there when it is read. Of a small random model of LLaMA's kind, written here."""

import pathlib
import tempfile
import time

import numpy as np

import heed
from random_checkpoint import write_llama

with tempfile.TemporaryDirectory() as folder:
    write_llama(pathlib.Path(folder), layers=1, channels=32, heads=2, vocabulary=256,
                context=65_536)
    model = heed.load(folder)
tokens = np.random.default_rng(0).integers(0, 256, model.cfg.n_ctx)
begin = time.perf_counter()
_, cache = model.run_with_cache(tokens, "pattern0", return_type=None)
pattern = cache["pattern", 0]
print(f"{pattern.shape} in {cache.nbytes / 2**20:.0f} MiB, {time.perf_counter() - begin:.1f} s")

begin = time.perf_counter()
row = pattern[0, 1, 50_000]
tile = pattern[0, 0, 65_000:65_256, :256]
print(f"a row of {len(row):,} weights, which sum to {row.sum():.5f}, and a tile {tile.shape}: "
      f"{(time.perf_counter() - begin) * 1000:.1f} ms")
assert abs(float(row.sum()) - 1) < 1e-3 and not row[50_001:].any()
