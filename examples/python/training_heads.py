"""A trained model's heads over time: trains a small model on stories, looks at its heads after some
steps, and stops when the loss is low enough."""

import tempfile

import heed

text = "\n".join(heed.microworld.story(1, index)["text"] for index in range(300))
with tempfile.TemporaryDirectory() as folder:
    run = heed.train(text=text, out=f"{folder}/run", settings={
        "steps": 120, "layers": 2, "heads": 2, "channels": 48, "context": 64, "batch_size": 8,
        "learning_rate": 4e-3, "warmup_steps": 10, "evaluate_every": 20})
    for step in run:
        if step.validation_loss is not None:
            print(f"step {step.step}: validation loss {step.validation_loss:.2f}")
        if step.step == 40 and step.validation_loss is not None:
            run.stop()  # saved: resume=True goes on
    model = run.model()
    early = heed.heads(model, text[:200])["previous"]
    rest = heed.train(out=f"{folder}/run", resume=True).finish()
    model = rest.model()
    late = heed.heads(model, text[:200])["previous"]
    print("weight on the previous token, by layer and head:")
    print("after 40 steps", early.round(3).tolist())
    print(f"after {rest.result['steps']} steps", late.round(3).tolist())
    found = heed.evaluate(model, text[:2000])
    print(f"perplexity on its own text: {found.perplexity:.1f}")
