"""Path patching: through which later heads does an early head's clean output act?"""

import heed

model = heed.load("starter")
clean = "Late one evening, a fluffy blue hare"
corrupted = "Late one evening, a fluffy black hare"
answer, wrong = " deep", " dark"
if len(model.to_tokens(clean)[0]) != len(model.to_tokens(corrupted)[0]):
    raise SystemExit("the prompts must have the same number of tokens")
ids = [model.to_single_token(" deep"), heed.next_words(model, corrupted, 1)[0][0]]


def metric(logits):
    return float(logits[0, -1, ids[0]] - logits[0, -1, ids[1]])


sweep = heed.patching.head_out(model, clean, corrupted, answer=ids[0], wrong=ids[1])
layer, head = divmod(int(sweep.recovered.argmax()), model.cfg.n_heads)
print(f"metric: clean {sweep.clean:.2f}, corrupted {sweep.corrupted:.2f}; patching L{layer}H{head} "
      f"restores {sweep.recovered[layer, head]:.0%}")

estimate = heed.patching.head_out(model, clean, corrupted, answer=ids[0], wrong=ids[1],
                                  method="attribution")
print(f"its first-order estimate: {estimate.recovered[layer, head]:.0%}")

direct = heed.patching.path_patch(model, clean, corrupted, [(layer, head)], "logits", metric)
print(f"L{layer}H{head} to the logits, with other heads held: {direct - sweep.corrupted:+.2f}")
for later in range(layer + 1, model.cfg.n_layers):
    through = heed.patching.path_patch(
        model, clean, corrupted, [(layer, head)],
        [(later, each, "v") for each in range(model.cfg.n_heads)], metric)
    print(f"through the values of layer {later}: {through - sweep.corrupted:+.2f}")
