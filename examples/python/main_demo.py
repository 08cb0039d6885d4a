"""The steps of TransformerLens's main demo, with its names: caches, hooks, patches, weights."""

from functools import partial

import numpy as np

from heed import FactoredMatrix, HookedTransformer, evals, utils

model = HookedTransformer.from_pretrained("starter", device=utils.get_device())

# 1. a loss, and what was computed on the way
text = "A timid grey mouse met a huge woolly bear. The mouse crept and the bear slept."
loss = model(text, return_type="loss")
tokens = model.to_tokens(text)
logits, cache = model.run_with_cache(tokens, remove_batch_dim=True)
pattern = cache["pattern", 0, "attn"]
print(f"{len(model.to_str_tokens(text))} tokens, loss {loss:.3f}, patterns {pattern.shape}")

# 2. hooks: the loss without each head
def head_ablation_hook(value, hook, head):
    value[:, :, head, :] = 0.0
    return value

ablated = np.array([[model.run_with_hooks(tokens, return_type="loss", fwd_hooks=[
    (utils.get_act_name("v", layer), partial(head_ablation_hook, head=head))])
    for head in range(model.cfg.n_heads)] for layer in range(model.cfg.n_layers)])
layer, head = np.unravel_index(ablated.argmax(), ablated.shape)
print(f"without L{layer}H{head}: loss {ablated[layer, head]:.3f}")

# 3. patching: the clean stream put into the corrupted prompt, one position of one layer a time
clean, corrupted = "Late one evening, a fluffy blue hare", "Late one evening, a fluffy brown hare"
answers = [model.to_single_token(word) for word in (" deep", " soft")]
def logit_difference(logits):
    return logits[0, -1, answers[0]] - logits[0, -1, answers[1]]

clean_logits, clean_cache = model.run_with_cache(clean)
baseline = [logit_difference(clean_logits), logit_difference(model(corrupted))]
def residual_stream_patching_hook(resid_pre, hook, position):
    resid_pre[:, position, :] = clean_cache[hook.name][:, position, :]
    return resid_pre

patched = np.array([[logit_difference(model.run_with_hooks(corrupted, fwd_hooks=[
    (utils.get_act_name("resid_pre", layer), partial(residual_stream_patching_hook, position=at))]))
    for at in range(clean_logits.shape[1])] for layer in range(model.cfg.n_layers)])
print("recovered:\n", ((patched - baseline[1]) / (baseline[0] - baseline[1])).round(2))

# 4. induction: attention to what followed a token's first occurrence, of random tokens twice
half = np.random.default_rng(0).integers(1, model.cfg.d_vocab, (4, 50))
repeated, scores = np.concatenate([half, half], axis=1), np.zeros(ablated.shape)
def induction_score_hook(pattern, hook):
    scores[hook.layer()] = np.diagonal(pattern, 1 - 50, -2, -1).mean((0, -1))

model.run_with_hooks(repeated, return_type=None, fwd_hooks=[
    (lambda name: name.endswith("pattern"), induction_score_hook)])
print(f"induction: at most {scores.max():.3f}, loss {evals.induction_loss(model):.1f} (none here)")

# 5. weights: whether heads copy, by the eigenvalues of what they do from token to token
full_OV_circuit: FactoredMatrix = model.embed.W_E @ model.OV @ model.unembed.W_U
eigenvalues = full_OV_circuit.eigenvalues
copying = eigenvalues.sum(-1).real / np.abs(eigenvalues).sum(-1)
print("copying:\n", copying.round(2), "\nW_Q of the first layer:", model.blocks[0].attn.W_Q.shape)
print(model.generate(text, max_new_tokens=20, temperature=0.7, return_type="str", verbose=False))
