"""Sparse autoencoders and transcoders in PyTorch, by the rules that SAELens documents, in any
precision: what heed's goldens and the tests of splicing compare with.

x (N, d_in); W_enc (d_in, d_sae), W_dec (d_sae, d_out), as SAELens stores them.
"""

import torch


class SparseDictionary:
    def __init__(self, config, weights, dtype=torch.float64):
        self.architecture = config.get("architecture", "standard")
        self.norm = config.get("normalize_activations", "none")
        self.subtracts = config.get("apply_b_dec_to_input", True)
        self.rescales = config.get("rescale_acts_by_decoder_norm", False)
        self.is_transcoder = "transcoder" in self.architecture
        self.k = config.get("k", config.get("activation_fn_kwargs", {}).get("k"))
        if config.get("activation_fn_str") == "topk":
            self.architecture = "topk"
        self.weights = {name: torch.tensor(values, dtype=dtype) for name, values in weights.items()}

    def read(self, x):
        """The input's norm and bias; what undoes the norm."""
        undo = lambda out: out
        if self.norm == "constant_norm_rescale":
            scale = x.norm(dim=-1, keepdim=True) / x.shape[-1] ** 0.5
            x = x / scale
            undo = lambda out: out * scale
        elif self.norm == "layer_norm":
            mean = x.mean(dim=-1, keepdim=True)
            deviation = (x - mean).std(dim=-1, keepdim=True)
            x = (x - mean) / (deviation + 1e-5)
            undo = lambda out: out * deviation + mean
        if self.subtracts and not self.is_transcoder:
            x = x - self.weights["b_dec"]
        return x, undo

    def pre(self, x):
        w = self.weights
        if "r_mag" in w:
            return x @ (w["W_enc"] * w["r_mag"].exp()) + w["b_mag"]
        pre = x @ w["W_enc"] + w["b_enc"]
        return pre * w["W_dec"].norm(dim=-1) if self.rescales else pre

    def activate(self, x, pre):
        w = self.weights
        if "b_gate" in w:
            return torch.relu(pre) * (x @ w["W_enc"] + w["b_gate"] > 0)
        if "threshold" in w:
            return torch.relu(pre) * (pre > w["threshold"])
        if self.architecture == "topk":
            kept = torch.topk(pre, self.k, dim=-1)
            return torch.zeros_like(pre).scatter(-1, kept.indices, torch.relu(kept.values))
        if self.architecture == "batchtopk":
            flat = torch.relu(pre).flatten()
            kept = torch.topk(flat, self.k * pre[..., 0].numel())
            return torch.zeros_like(flat).scatter(0, kept.indices, kept.values).reshape(pre.shape)
        return torch.relu(pre)

    def reconstruct(self, acts):
        w = self.weights
        if self.rescales:
            acts = acts / w["W_dec"].norm(dim=-1)
        if "scaling_factor" in w:
            acts = acts * w["scaling_factor"]
        return acts @ w["W_dec"] + w["b_dec"]

    def finish(self, recons, x, undo):
        out = recons if self.is_transcoder else undo(recons)
        return out + x @ self.weights["W_skip"].T if "W_skip" in self.weights else out

    def forward(self, x, change=lambda acts: acts):
        """Every step by SAELens's name of its hook."""
        steps = {"hook_sae_input": x}
        inner, undo = self.read(x)
        steps["hook_sae_acts_pre"] = self.pre(inner)
        steps["hook_sae_acts_post"] = change(self.activate(inner, steps["hook_sae_acts_pre"]))
        steps["hook_sae_recons"] = self.reconstruct(steps["hook_sae_acts_post"])
        steps["hook_sae_output"] = self.finish(steps["hook_sae_recons"], x, undo)
        return steps


def random_weights(generator, architecture, d_in, d_sae, d_out=None, extra=()):
    """Weights as float32 arrays, at scales at which some features are active and some are not."""
    d_out = d_out or d_in
    normal = lambda *shape: generator.standard_normal(shape).astype("float32")
    weights = {"W_enc": normal(d_in, d_sae) / d_in**0.5, "W_dec": normal(d_sae, d_out) / d_out**0.5,
               "b_dec": 0.3 * normal(d_out)}
    weights = {name: values.astype("float32") for name, values in weights.items()}
    if architecture == "gated":
        weights |= {"b_gate": 0.2 * normal(d_sae), "b_mag": 0.2 * normal(d_sae),
                    "r_mag": 0.3 * normal(d_sae)}
    else:
        weights["b_enc"] = 0.2 * normal(d_sae)
    if "jumprelu" in architecture:
        weights["threshold"] = abs(0.5 * normal(d_sae))
    if architecture == "skip_transcoder":
        weights["W_skip"] = 0.3 * normal(d_out, d_in)
    if "scaling_factor" in extra:
        weights["scaling_factor"] = 1 + 0.2 * normal(d_sae)
    return {name: values.astype("float32") for name, values in weights.items()}
