#!/usr/bin/python3
"""Writes dictionaries/: sparse autoencoders and transcoders in the layouts in which SAELens,
circuit-tracer and Gemma Scope publish them, and what PyTorch computes with them in float64.

    /usr/bin/python3 tests/golden/make_dictionary_goldens.py

needs PyTorch and numpy. Each golden.safetensors holds x (N, d_in), every step by the name of
SAELens's hook, d_out (N, d_out) and the gradients of Σ output · d_out by x and by the activations.
"""

import json
import pathlib

import numpy
import torch

import safetensors_by_hand
from dictionary_module import SparseDictionary, random_weights

D_IN, D_SAE, ROWS = 8, 24, 7
POINT = "blocks.1.hook_resid_pre"

# Configs as versions of SAELens write them; what matters of them is read, the rest is there too.
NEW = {"d_in": D_IN, "d_sae": D_SAE, "dtype": "float32", "device": "cpu",
       "apply_b_dec_to_input": True, "normalize_activations": "none",
       "reshape_activations": "none",
       "metadata": {"model_name": "tiny", "hook_name": POINT, "hook_head_index": None,
                    "sae_lens_version": "6.0.0", "prepend_bos": True}}
OLD = {"d_in": D_IN, "d_sae": D_SAE, "dtype": "torch.float32", "device": "cpu",
       "model_name": "tiny", "hook_name": POINT, "hook_layer": 1, "hook_head_index": None,
       "finetuning_scaling_factor": False, "activation_fn_str": "relu",
       "apply_b_dec_to_input": True, "normalize_activations": "none", "context_size": 128}
OLDEST = {"d_in": D_IN, "d_sae": D_SAE, "dtype": "torch.float32", "model_name": "tiny",
          "hook_point": "blocks.{layer}.hook_resid_pre", "hook_point_layer": 1,
          "hook_point_head_index": None, "normalize_activations": False, "lr": 1e-4}
OUT = {"d_out": 6, "hook_name_out": "blocks.1.hook_mlp_out", "hook_layer_out": 1}

CONFIGS = {
    "standard_oldest": OLDEST,
    "standard": {**NEW, "architecture": "standard"},
    "standard_without_bias": {**NEW, "architecture": "standard", "apply_b_dec_to_input": False},
    "gated": {**OLD, "architecture": "gated"},
    "topk_old": {**OLD, "architecture": "standard", "activation_fn_str": "topk",
                 "activation_fn_kwargs": {"k": 4}},
    "topk": {**NEW, "architecture": "topk", "k": 4,
             "normalize_activations": "constant_norm_rescale"},
    "topk_rescaled": {**NEW, "architecture": "topk", "k": 4, "rescale_acts_by_decoder_norm": True},
    "batchtopk": {**NEW, "architecture": "batchtopk", "k": 3},
    "jumprelu": {**NEW, "architecture": "jumprelu", "normalize_activations": "layer_norm"},
    "finetuned": {**OLD, "architecture": "standard", "finetuning_scaling_factor": True},
    "transcoder": {**NEW, **OUT, "architecture": "transcoder"},
    "skip_transcoder": {**NEW, **OUT, "architecture": "skip_transcoder"},
    "jumprelu_transcoder": {**NEW, **OUT, "architecture": "jumprelu_transcoder"},
}


def golden_of(dictionary, generator):
    x = torch.tensor(generator.standard_normal((ROWS, D_IN)).astype("float32")).double()
    x.requires_grad_(True)
    steps = dictionary.forward(x)
    steps["hook_sae_acts_post"].retain_grad()
    d_out = torch.tensor(generator.standard_normal(steps["hook_sae_output"].shape)).float().double()
    (steps["hook_sae_output"] * d_out).sum().backward()
    found = {**steps, "d_out": d_out, "d_x": x.grad, "d_acts": steps["hook_sae_acts_post"].grad}
    return {name: values.detach().numpy().astype("float32") for name, values in found.items()}


def write_saelens(directory, generator):
    for name, config in CONFIGS.items():
        folder = directory / name
        folder.mkdir(parents=True, exist_ok=True)
        architecture = config.get("architecture", "standard")
        extra = ("scaling_factor",) if config.get("finetuning_scaling_factor") else ()
        weights = random_weights(generator, architecture, D_IN, D_SAE, config.get("d_out"), extra)
        (folder / "cfg.json").write_text(json.dumps(config) + "\n")
        safetensors_by_hand.write(folder / "sae_weights.safetensors", weights)
        golden = golden_of(SparseDictionary(config, weights), generator)
        safetensors_by_hand.write(folder / "golden.safetensors", golden)


def write_gemma_scope(directory, generator):
    folder = directory / "tiny-pt-res" / "layer_1" / "width_24"
    folder.mkdir(parents=True, exist_ok=True)
    weights = random_weights(generator, "jumprelu", D_IN, D_SAE)
    with open(folder / "params.npz", "wb") as file:
        numpy.savez(file, **weights)
    config = {"architecture": "jumprelu", "apply_b_dec_to_input": False}
    golden = golden_of(SparseDictionary(config, weights), generator)
    safetensors_by_hand.write(folder / "golden.safetensors", golden)


def write_transcoders(directory, generator):
    """A transcoder for each layer, as circuit-tracer stores them: W_enc (d_sae, d_in)."""
    folder = directory / "transcoder_set"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(
        'model_name: "tiny"\nmodel_kind: transcoder_set\nfeature_input_hook: "hook_resid_mid"\n'
        "feature_output_hook: hook_mlp_out # where features write\n")
    for layer in range(2):
        weights = random_weights(generator, "skip_transcoder", D_IN, D_SAE)
        weights["threshold"] = abs(0.3 * generator.standard_normal(D_SAE)).astype("float32")
        stored = {"activation_function.threshold" if name == "threshold" else name: values
                  for name, values in weights.items()} | {"W_enc": weights["W_enc"].T.copy()}
        safetensors_by_hand.write(folder / f"layer_{layer}.safetensors", stored)
        config = {"architecture": "jumprelu_transcoder"}
        golden = golden_of(SparseDictionary(config, weights), generator)
        safetensors_by_hand.write(folder / f"golden_{layer}.safetensors", golden)


def write_cross_layer(directory, generator, layers=3):
    """Features of layer i write to layers i, i + 1, …: W_dec_i (d_sae, layers - i, d_out)."""
    folder = directory / "cross_layer"
    folder.mkdir(parents=True, exist_ok=True)
    x = generator.standard_normal((layers, ROWS, D_IN)).astype("float32")
    outputs = numpy.zeros((layers, ROWS, D_IN))
    for layer in range(layers):
        normal = lambda *shape: generator.standard_normal(shape).astype("float32")
        encoder, decoder = normal(D_SAE, D_IN) / 3, normal(D_SAE, layers - layer, D_IN) / 3
        encoder, decoder = encoder.astype("float32"), decoder.astype("float32")
        b_enc, b_dec, threshold = 0.2 * normal(D_SAE), normal(D_IN), abs(0.2 * normal(D_SAE))
        safetensors_by_hand.write(
            folder / f"W_enc_{layer}.safetensors",
            {f"W_enc_{layer}": encoder, f"b_enc_{layer}": b_enc.astype("float32"),
             f"b_dec_{layer}": b_dec, f"threshold_{layer}": threshold.astype("float32")})
        safetensors_by_hand.write(folder / f"W_dec_{layer}.safetensors", {f"W_dec_{layer}": decoder})
        pre = x[layer].astype("float64") @ encoder.T + b_enc.astype("float32")
        acts = numpy.maximum(pre, 0) * (pre > threshold)
        outputs[layer] += b_dec
        outputs[layer:] += numpy.einsum("nf,flc->lnc", acts, decoder.astype("float64"))
    safetensors_by_hand.write(folder / "golden.safetensors",
                              {"x": x, "outputs": outputs.astype("float32")})


def main():
    directory = pathlib.Path(__file__).parent / "dictionaries"
    generator = numpy.random.default_rng(5)
    write_saelens(directory, generator)
    write_gemma_scope(directory, generator)
    write_transcoders(directory, generator)
    write_cross_layer(directory, generator)


if __name__ == "__main__":
    main()
