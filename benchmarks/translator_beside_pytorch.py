#!/usr/bin/python3
"""heed and torch.nn.Transformer on the same translator, in one run, in turns.

    cmake --preset release -DHEED_BUILD_BENCHMARKS=ON
    cmake --build --preset release --target translator_beside_pytorch
    /usr/bin/python3 benchmarks/translator_beside_pytorch.py MODEL --train train.en train.de --test test.en

MODEL is a directory or run that `heed train --pairs` wrote; text files may end in .gz. Both programs have
its weights, the same batches of token ids and the same number of threads. Before anything is timed, the
losses of all batches are compared (relative difference at most 1e-4), and the greedy translations of the
test set.

Training is forward, backward and Adam (heed: AdamW and the clipping of gradients) with label smoothing and
dropout of embeddings and branches. heed's batches have no padding. PyTorch's are the same pairs, padded;
logits are computed of real targets only. PyTorch gets the faster of Adam's two implementations, in f32 and
in bf16 (autocast).

Greedy decoding is of the whole test set, sorted by length; sentences that are finished leave the batch.
torch.nn.Transformer has no cache, so "module" runs its decoder over all that was written, with the logits of
the last position only. "cached" is what one can write beside it: the same weights, with keys and values of
the past and of the source kept. Both get the fastest batch size of those given, with a decoder in f32 or bf16,
found before on every fourth sentence.

Figures are medians over rounds, of rates and of the ratios of one round. In each round the order is turned
round. A quiet machine is needed, as for `heed bench` (docs/performance.md).
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--train", nargs=2, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--test", required=True, metavar="SOURCE")
    parser.add_argument("--batches", type=int, default=8, help="of up to 4,096 tokens a side [8]")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=1000000, help="of the test set [all]")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 64, 128, 256],
                        help="that PyTorch decodes with, the fastest of them")
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/translator_beside_pytorch")
    parser.add_argument("--json", type=pathlib.Path, help="also write every measurement to a file")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGUMENTS.threads)
sys.path.insert(0, str(ROOT / "tests/golden"))

import torch  # noqa: E402  (after the number of threads)
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import safetensors_by_hand  # noqa: E402
from pair_module import TorchTransformer  # noqa: E402


class Heed:
    """heed's side of it, which works when it is asked to."""

    def __init__(self, arguments):
        self.process = subprocess.Popen(
            [arguments.program, arguments.model, *arguments.train, arguments.test,
             str(arguments.batches), str(arguments.sentences), str(arguments.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.work = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(self.process.wait() or 1)
        return json.loads(line)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def model_directory(path):
    """That of a run is its best model, as heed takes it."""
    for name in ("best", "last"):
        if (path / "run.json").exists() and (path / name / "config.json").exists():
            return path / name
    return path


def padded(sequences, padding):
    """(B, T) and which of it is padding."""
    rows = torch.full((len(sequences), max(map(len, sequences))), padding)
    hidden = torch.ones(rows.shape, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        rows[row, :len(sequence)] = torch.tensor(sequence)
        hidden[row, :len(sequence)] = False
    return rows, hidden


def causal_mask(positions):
    return torch.ones(positions, positions, dtype=torch.bool).triu(1)


def precision_of(is_bf16):
    return torch.autocast("cpu", dtype=torch.bfloat16) if is_bf16 else contextlib.nullcontext()


class Translator(TorchTransformer):
    """torch.nn.Transformer with the weights of a model directory, for batches."""

    def __init__(self, directory, dropout):
        self.config = json.loads((directory / "config.json").read_text())
        super().__init__(self.config)
        tensors = safetensors_by_hand.read(directory / "model.safetensors")
        with torch.no_grad():
            for name, parameter in self.in_file(lambda value: value.data).items():
                parameter.copy_(torch.from_numpy(tensors.pop(name)))
        if tensors:
            sys.exit(f"{directory}: torch.nn.Transformer has no {', '.join(sorted(tensors))}")
        self.table = self.table.float()
        self.padding, self.end = self.config["pad_token_id"], self.config["eos_token_id"]
        self.start = self.config["decoder_start_token_id"]
        self.dropout = dropout
        self.unembedding = None  # another than the embedding
        for layer in [*self.transformer.encoder.layers, *self.transformer.decoder.layers]:
            # Where heed has dropout: after the branches, not within them.
            for name in ("dropout1", "dropout2", "dropout3"):
                if hasattr(layer, name):
                    getattr(layer, name).p = dropout

    def rows_in(self, tokens):
        """(B, T, C)"""
        rows = self.embedding(tokens) * math.sqrt(self.channels) + self.table[:tokens.shape[1]]
        return functional.dropout(rows, self.dropout, self.training)

    def decode_in_bf16(self):
        """Weights and activations of the decoder; PyTorch 1.13's fast encoder knows f32 only."""
        self.transformer.decoder.bfloat16()
        self.unembedding = self.embedding.weight.detach().bfloat16()

    def logits_of(self, rows):
        weight = self.embedding.weight if self.unembedding is None else self.unembedding
        return rows @ weight.T

    def loss(self, batch, smoothing):
        memory = self.transformer.encoder(self.rows_in(batch.source),
                                          src_key_padding_mask=batch.source_hidden)
        # Padding stands behind the targets, where the mask hides it from them.
        rows = self.transformer.decoder(self.rows_in(batch.target), memory,
                                        tgt_mask=batch.causal,
                                        memory_key_padding_mask=batch.source_hidden)
        return functional.cross_entropy(self.logits_of(rows[batch.real]), batch.next,
                                        label_smoothing=smoothing)


class Batch:
    def __init__(self, batch, padding):
        self.source, self.source_hidden = padded(batch["source"], padding)
        self.target, hidden = padded(batch["target"], padding)
        self.real = ~hidden
        self.next = torch.tensor([token for row in batch["next"] for token in row])
        self.causal = causal_mask(self.target.shape[1])
        self.tokens = sum(map(len, batch["source"])) + len(self.next)


class Training:
    def __init__(self, directory, work, is_bf16, foreach):
        self.model = Translator(directory, work["dropout"]).train()
        self.smoothing = work["label_smoothing"]
        self.batches = [Batch(batch, self.model.padding) for batch in work["batches"]]
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-6, betas=(0.9, 0.98),
                                          foreach=foreach)
        self.is_bf16 = is_bf16
        self.name = ("bf16" if is_bf16 else "f32") + (", foreach" if foreach else "")

    def losses(self):
        with torch.no_grad():
            self.model.eval()
            losses = [self.model.loss(batch, 0.0).item() for batch in self.batches]
            self.model.train()
            return losses

    def run(self):
        for batch in self.batches:
            self.optimizer.zero_grad(set_to_none=True)
            with precision_of(self.is_bf16):
                loss = self.model.loss(batch, self.smoothing)
            loss.backward()
            self.optimizer.step()


class Hypotheses:
    """What a batch of sources has written so far, by the source's number."""

    def __init__(self, model, numbers, sources, written):
        self.model, self.written = model, written
        self.numbers = torch.tensor(numbers)
        context = model.config["max_position_embeddings"]
        # heed's longest translation
        self.room = torch.tensor([min(3 * len(sources[i]) + 16, context) for i in numbers])
        self.length = 0

    def append(self, logits):
        """The likeliest token of each, and which go on."""
        logits[:, self.model.padding] = -math.inf
        tokens = logits.argmax(-1)
        self.length += 1
        for number, token in zip(self.numbers.tolist(), tokens.tolist()):
            self.written[number].append(token)
        return tokens, (tokens != self.model.end) & (self.room > self.length)

    def keep(self, rows):
        self.numbers, self.room = self.numbers[rows], self.room[rows]


def decode_by_module(model, hypotheses, memory, hidden):
    tokens = torch.full((len(memory), 1), model.start)
    while len(tokens) > 0:
        rows = model.transformer.decoder(model.rows_in(tokens).to(memory.dtype), memory,
                                         tgt_mask=causal_mask(tokens.shape[1]),
                                         memory_key_padding_mask=hidden)[:, -1]
        last, going_on = hypotheses.append(model.logits_of(rows).float())
        tokens = torch.cat([tokens, last[:, None]], 1)
        if not going_on.all():
            hypotheses.keep(going_on)
            tokens, memory, hidden = tokens[going_on], memory[going_on], hidden[going_on]


class CachedLayer:
    """One step of a nn.TransformerDecoderLayer, with the keys and values (B, H, T, D) of the past
    and (B, H, S, D) of the source."""

    def __init__(self, layer, memory, positions):
        self.layer, self.heads = layer, layer.self_attn.num_heads
        self.size = memory.shape[-1] // self.heads
        shape = (len(memory), self.heads, positions, self.size)
        self.keys, self.values = memory.new_empty(shape), memory.new_empty(shape)
        cross, channels = layer.multihead_attn, memory.shape[-1]
        both = functional.linear(memory, cross.in_proj_weight[channels:],
                                 cross.in_proj_bias[channels:])
        both = both.view(*memory.shape[:2], 2, self.heads, self.size)
        self.source_keys = both[:, :, 0].permute(0, 2, 3, 1).contiguous()
        self.source_values = both[:, :, 1].transpose(1, 2).contiguous()

    def mixed(self, query, keys, values, hidden):
        """query (B, H, 1, D), keys (B, H, D, S), values (B, H, S, D)"""
        scores = query @ keys * self.size**-0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        return (torch.softmax(scores, -1) @ values).flatten(1)

    def self_attention(self, x, position):
        attention = self.layer.self_attn
        projected = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias)
        query, key, value = projected.view(len(x), 3, self.heads, self.size).unbind(1)
        self.keys[:, :, position], self.values[:, :, position] = key, value
        return attention.out_proj(self.mixed(
            query[:, :, None], self.keys[:, :, :position + 1].transpose(2, 3),
            self.values[:, :, :position + 1], None))

    def cross_attention(self, x, hidden):
        attention, channels = self.layer.multihead_attn, x.shape[-1]
        query = functional.linear(x, attention.in_proj_weight[:channels],
                                  attention.in_proj_bias[:channels])
        return attention.out_proj(self.mixed(query.view(len(x), self.heads, 1, self.size),
                                             self.source_keys, self.source_values, hidden))

    def feed_forward(self, x):
        return self.layer.linear2(self.layer.activation(self.layer.linear1(x)))

    def step(self, x, position, hidden):
        layer = self.layer
        if layer.norm_first:
            x = x + self.self_attention(layer.norm1(x), position)
            x = x + self.cross_attention(layer.norm2(x), hidden)
            return x + self.feed_forward(layer.norm3(x))
        x = layer.norm1(x + self.self_attention(x, position))
        x = layer.norm2(x + self.cross_attention(x, hidden))
        return layer.norm3(x + self.feed_forward(x))

    def keep(self, rows):
        for name in ("keys", "values", "source_keys", "source_values"):
            setattr(self, name, getattr(self, name)[rows])


def decode_with_cache(model, hypotheses, memory, hidden):
    layers = [CachedLayer(layer, memory, int(hypotheses.room.max()))
              for layer in model.transformer.decoder.layers]
    tokens, hidden = torch.full((len(memory),), model.start), hidden[:, None, None]
    for position in range(int(hypotheses.room.max())):
        x = model.embedding(tokens) * math.sqrt(model.channels) + model.table[position]
        x = x.to(memory.dtype)
        for layer in layers:
            x = layer.step(x, position, hidden)
        x = model.transformer.decoder.norm(x)
        tokens, going_on = hypotheses.append(model.logits_of(x).float())
        if going_on.all():
            continue
        if not going_on.any():
            return
        hypotheses.keep(going_on)
        tokens, hidden = tokens[going_on], hidden[going_on]
        for layer in layers:
            layer.keep(going_on)


class Greedy:
    def __init__(self, directory, decode, is_bf16, batch_size):
        self.model = Translator(directory, 0.0).eval()
        if is_bf16:
            self.model.decode_in_bf16()
        self.decode, self.batch_size = decode, batch_size
        self.name = f"{'bf16' if is_bf16 else 'f32'}, {batch_size} sentences"

    @torch.inference_mode()
    def run(self, sources):
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        written = [[] for _ in sources]
        for begin in range(0, len(order), self.batch_size):
            numbers = order[begin:begin + self.batch_size]
            tokens, hidden = padded([sources[i] for i in numbers], self.model.padding)
            memory = self.model.transformer.encoder(self.model.rows_in(tokens),
                                                    src_key_padding_mask=hidden)
            if self.model.unembedding is not None:
                memory = memory.bfloat16()
            self.decode(self.model, Hypotheses(self.model, numbers, sources, written), memory,
                        hidden)
        return written


def seconds_of(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fastest(candidates, work):
    """Each works once to warm up and is then timed once."""
    times = []
    for candidate in candidates:
        work(candidate)
        times.append(seconds_of(lambda: work(candidate)))
        print(f"  {candidate.name}: {times[-1]:.2f} s", file=sys.stderr)
    return candidates[times.index(min(times))]


def check_losses(heed, training):
    for ours, theirs in zip(heed.ask("losses"), training.losses()):
        if abs(ours - theirs) > 1e-4 * abs(theirs):
            sys.exit(f"the losses of a batch differ: {ours} and PyTorch's {theirs}")


def share_of_equal(heed, translations):
    ours = heed.ask("translations")[:len(translations)]
    return sum(a == b for a, b in zip(ours, translations)) / len(translations)


class Row:
    """Two contenders at one amount of work, round by round."""

    def __init__(self, name, unit, amount, heed, torch_work, torch_name):
        self.name, self.unit, self.amount = name, unit, amount
        self.contenders = {"heed": heed, "PyTorch": torch_work}
        self.torch_name = torch_name
        self.seconds = {"heed": [], "PyTorch": []}

    def measure(self, turned):
        for name in sorted(self.contenders, reverse=turned):
            self.seconds[name].append(self.contenders[name]())

    def text(self):
        rates = {name: self.amount / statistics.median(times)
                 for name, times in self.seconds.items()}
        ratios = [b / a for a, b in zip(self.seconds["heed"], self.seconds["PyTorch"])]
        return (f"{self.name:<26} {rates['heed']:>10,.0f} {rates['PyTorch']:>10,.0f} {self.unit:<5} "
                f"{statistics.median(ratios):>6.2f}  {min(ratios):.2f} … {max(ratios):.2f}  "
                f"{self.torch_name}")

    def document(self):
        return {"name": self.name, "unit": self.unit, "amount": self.amount,
                "pytorch": self.torch_name, "seconds": self.seconds}


def training_rows(heed, directory):
    candidates = {is_bf16: [Training(directory, heed.work, is_bf16, foreach)
                            for foreach in (False, True)] for is_bf16 in (False, True)}
    check_losses(heed, candidates[False][0])
    print("PyTorch's training:", file=sys.stderr)
    chosen = {is_bf16: fastest(each, Training.run) for is_bf16, each in candidates.items()}
    best = fastest(list(chosen.values()), Training.run)
    tokens = sum(batch.tokens for batch in best.batches)

    def row(name, command, training):
        return Row(name, "tok/s", tokens, lambda: heed.ask(command),
                   lambda: seconds_of(training.run), training.name)
    return [row("training, f32", "train f32", chosen[False]),
            row("training, bf16", "train bf16", chosen[True]),
            row("training, bf16 and fastest", "train bf16", best)]


def greedy_rows(heed, directory, arguments):
    sources = heed.work["test"]
    rows = []
    for name, decode in (("module", decode_by_module), ("cached", decode_with_cache)):
        plain = Greedy(directory, decode, False, arguments.batch_sizes[0])
        translations = plain.run(sources[:200])
        equal = share_of_equal(heed, translations)
        print(f"greedy, {name}: {100 * equal:.1f} % of {len(translations)} translations have "
              "heed's tokens",
              file=sys.stderr)
        if equal < 0.95:
            sys.exit("the translations differ")
        best = fastest([Greedy(directory, decode, is_bf16, size)
                        for is_bf16 in (False, True) for size in arguments.batch_sizes],
                       lambda candidate: candidate.run(sources[::4]))
        rows.append(Row(f"greedy, {name}", "sen/s", len(sources), lambda: heed.ask("greedy"),
                        lambda best=best: seconds_of(lambda: best.run(sources)), best.name))
    return rows


def require_fast_products():
    """Debian's PyTorch takes whatever BLAS is there; the reference implementation is many times slower."""
    loaded = pathlib.Path("/proc/self/maps").read_text()
    if not any(name in loaded for name in ("openblas", "libmkl", "libblis")):
        sys.exit("PyTorch multiplies with the reference BLAS here: install libopenblas0-pthread")


def main():
    require_fast_products()
    arguments = ARGUMENTS
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    arguments.model = model_directory(arguments.model)
    heed = Heed(arguments)
    rows = training_rows(heed, arguments.model) + greedy_rows(heed, arguments.model, arguments)
    for round_number in range(-1, arguments.rounds):  # the first warms up
        for row in rows:
            row.measure(round_number % 2 == 1)
            if round_number < 0:
                row.seconds = {"heed": [], "PyTorch": []}
        print(f"round {round_number + 1} of {arguments.rounds}", file=sys.stderr)
    heed.close()
    print(f"\nPyTorch {torch.__version__}, {arguments.threads} threads, {arguments.rounds} rounds, "
          f"{arguments.batches} batches, {len(heed.work['test'])} sentences")
    print(f"{'':<26} {'heed':>10} {'PyTorch':>10} {'':<5} {'times':>6}  least … most  PyTorch's best")
    for row in rows:
        print(row.text())
    if arguments.json:
        arguments.json.write_text(json.dumps([row.document() for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
