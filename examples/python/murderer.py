"""The murderer: the last word of a mystery needs a clue far back. Does the model read it there?"""

import numpy as np

import heed

model = heed.load("starter")
story = next(story for story in (heed.microworld.story(5, index, ["mystery"])
                                 for index in range(100))
             if len(model.to_tokens(story["text"])[0]) < model.cfg.n_ctx)
culprit = story["culprit"]
text = story["text"].encode()
prompt = text[:culprit["answer"]["begin"]].decode().rstrip()
answer = model.to_single_token(" " + culprit["name"])
others = [model.to_single_token(" " + name) for name in culprit["suspects"]
          if name != culprit["name"]]

logits = model(prompt)[0, -1]
print("...", prompt[-60:])
print(heed.next_words(model, prompt, 3))

# Cut the clue: let no query after it see its tokens, in any head.
clue_begin = len(model.to_tokens(text[:culprit["clue"]["begin"]].decode().rstrip())[0])
clue_end = len(model.to_tokens(text[:culprit["clue"]["end"]].decode())[0])


def hide(begin, end):
    def cut(scores, hook):
        scores[:, :, end:, begin:end] = -np.inf
    return cut


def margin(logits):
    return float(logits[answer] - np.max(logits[others]))


def without(begin, end):
    hooks = [(lambda name: name.endswith("attn_scores"), hide(begin, end))]
    return margin(model.run_with_hooks(prompt, hooks)[0, -1])


width = clue_end - clue_begin
print(f"logit of the murderer over the other suspects: {margin(logits):.2f}")
print(f"without sight of the clue (tokens {clue_begin} to {clue_end - 1}): "
      f"{without(clue_begin, clue_end):.2f}")
print(f"control, without the first {width} tokens instead: {without(1, 1 + width):.2f}")
