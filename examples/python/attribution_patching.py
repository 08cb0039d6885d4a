"""The steps of TransformerLens's attribution patching demo, with its names: estimates of all patches."""

import numpy as np

from heed import ActivationCache, HookedTransformer, patching

model = HookedTransformer.from_pretrained("starter")
model.set_use_attn_result(True)
colours = ["blue", "brown"]
clean_tokens = model.to_tokens([f"Late one evening, a fluffy {colour} hare" for colour in colours])
corrupted_tokens = clean_tokens[::-1]
answers = [model.to_single_token(word) for word in (" deep", " soft")]
answers = np.array([answers, answers[::-1]])
rows = np.arange(len(answers))


def logit_difference(logits):
    return (logits[rows, -1, answers[:, 0]] - logits[rows, -1, answers[:, 1]]).mean()


clean, corrupted = (logit_difference(model(tokens)) for tokens in (clean_tokens, corrupted_tokens))


def metric(logits):
    """0 as of the corrupted prompts, 1 as of the clean ones, and its gradient."""
    gradient = np.zeros_like(logits)
    gradient[rows[:, None], -1, answers] = np.array([1, -1]) / len(answers) / (clean - corrupted)
    return (logit_difference(logits) - corrupted) / (clean - corrupted), gradient


def get_cache_fwd_and_bwd(tokens):
    model.reset_hooks()
    cache, grad_cache, is_read = {}, {}, lambda name: not name.endswith(("_input", "_in"))
    model.add_hook(is_read, lambda act, hook: cache.__setitem__(hook.name, act.copy()), "fwd")
    model.add_hook(is_read, lambda act, hook: grad_cache.__setitem__(hook.name, act.copy()), "bwd")
    model.run_with_hooks(tokens, logit_target=metric, return_type=None)
    model.reset_hooks()
    return ActivationCache(cache, model), ActivationCache(grad_cache, model)


clean_cache, clean_grads = get_cache_fwd_and_bwd(clean_tokens)
corrupted_cache, corrupted_grads = get_cache_fwd_and_bwd(corrupted_tokens)


def attributed(parts, axes):
    """(clean − corrupted) · gradient of the parts of each cache, summed over axes."""
    of_clean, of_corrupted, gradient = map(parts, (clean_cache, corrupted_cache, corrupted_grads))
    return ((of_clean - of_corrupted) * gradient).sum(axes)


residual = attributed(lambda cache: cache.accumulated_resid(-1, incl_mid=True), (1, 3))
layers = attributed(lambda cache: cache.decompose_resid(-1, mode="all"), (1, 3))
heads = attributed(lambda cache: cache.stack_head_results(-1), (1, 2, 3)).reshape(model.W_Q.shape[:2])
parts = {name: attributed(lambda cache: cache.stack_activation(name), (1, 2, 4)) for name in "qkv"}
pattern = attributed(lambda cache: cache.stack_activation("pattern"), (1, 3, 4))
of_patch = model, corrupted_tokens, clean_cache, lambda logits: metric(logits)[0]
blocks = patching.get_act_patch_block_every(*of_patch)
exact = patching.get_act_patch_attn_head_all_pos_every(*of_patch)
estimated = np.stack([heads, *parts.values(), pattern])
for name, one, other in zip(("stream", "attention", "feed-forward", "heads", "q", "k", "v", "pattern"),
                            (residual[:-1:2], layers[2::2], layers[3::2], *estimated), (*blocks, *exact)):
    print(f"{name}: correlation {np.corrcoef(one.ravel(), other.ravel())[0, 1]:.2f}")
