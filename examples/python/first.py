"""A first look: what the built-in model predicts, and where one of its heads looks."""

import heed

model = heed.load("starter")
text = "Late one evening, a fluffy blue hare"
print(heed.next_words(model, text, 5))

logits, cache = model.run_with_cache(text)
pieces = model.to_str_tokens(text)
weights = cache["pattern", 4][0, 1, -1]  # layer 4, head 1, from the last token
key = int(weights.argmax())
print(f"L4H1 attends from {pieces[-1]!r} to {pieces[key]!r} with {weights[key]:.1%}")
assert pieces[key] == " blue"

without = model.run_with_hooks(text, [("z4", lambda z, hook: z.__setitem__((0, -1, 1), 0))])
deep = model.to_single_token(" deep")
print(f"logit of ' deep': {logits[0, -1, deep]:.2f}, without L4H1 {without[0, -1, deep]:.2f}")
