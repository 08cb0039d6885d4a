"""Export: activations as .npz, a picture of attention as one HTML file, and an equivalent model with
processed weights."""

import pathlib
import tempfile

import numpy as np

import heed

model = heed.load("starter")
text = "A fluffy blue creature roamed the verdant forest."
_, cache = model.run_with_cache(text, ["resid_post", "pattern"], return_type=None)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    np.savez(folder / "activations.npz", **{key: np.asarray(cache[key]) for key in cache})
    saved = np.load(folder / "activations.npz")
    print(f"{len(saved.files)} activations, {(folder / 'activations.npz').stat().st_size:,} bytes")

    page = heed.show_attention(model, text, 4)._repr_html_()
    (folder / "attention.html").write_text("<!doctype html><meta charset=utf-8>" + page)
    print(f"a picture of {len(page):,} bytes")
    assert len(page) <= 150_000

    heed.explain.save_processed(model, str(folder / "processed"))
    processed = heed.load(str(folder / "processed"))
    before, after = model(text), processed(text)
    before, after = (logits - logits.mean(-1, keepdims=True) for logits in (before, after))
    print(f"the processed model's centred logits differ by {np.abs(before - after).max():.1e}")
    assert np.abs(before - after).max() < 1e-2
