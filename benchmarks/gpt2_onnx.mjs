// A GPT-2 checkpoint (config.json, model.safetensors in f32) as an ONNX model with a cache of keys and values, of the
// standard's operators alone. Inputs: ids (1, T), positions (1, T), mask (T, P + T) that is added to scores, and
// past.L.key and past.L.value (1, H, P, D); outputs: logits (1, V) of the last position, present.L.key and .value.
import { readFileSync } from 'node:fs';
import path from 'node:path';

// Protocol buffers: a field is its number and wire type, then a varint (0), or a length and bytes (2).
const varint = (value) => {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
};
const integer = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => {
  const content = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([varint((field << 3) | 2), varint(content.length), content]);
};
const number = (field, value) => {
  const content = Buffer.alloc(4);
  content.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), content]);
};

// The messages of onnx.proto that are needed, by its field numbers.
const types = { float: 1, int64: 7 };
const tensor = (name, type, dims, data) => Buffer.concat([...dims.map((dim) => integer(1, dim)), integer(2, types[type]), bytes(8, name), bytes(9, data)]);
const attribute = (name, value) => {
  if (Array.isArray(value)) return Buffer.concat([bytes(1, name), ...value.map((each) => integer(8, each)), integer(20, 7)]);
  if (typeof value === 'string') return Buffer.concat([bytes(1, name), bytes(4, value), integer(20, 3)]);
  if (Number.isInteger(value)) return Buffer.concat([bytes(1, name), integer(3, value), integer(20, 2)]);
  return Buffer.concat([bytes(1, name), number(2, value), integer(20, 1)]);
};
const node = (type, inputs, outputs, attributes = {}) => Buffer.concat([
  ...inputs.map((name) => bytes(1, name)), ...outputs.map((name) => bytes(2, name)), bytes(3, outputs[0]), bytes(4, type),
  ...Object.entries(attributes).map(([name, value]) => bytes(5, attribute(name, value))),
]);
const valueInfo = (name, type, dims) => {
  const shape = Buffer.concat(dims.map((dim) => bytes(1, typeof dim === 'string' ? bytes(2, dim) : integer(1, dim))));
  return Buffer.concat([bytes(1, name), bytes(2, bytes(1, Buffer.concat([integer(1, types[type]), bytes(2, shape)])))]);
};

/** The model, as bytes. */
export function gpt2Onnx(folder) {
  const config = JSON.parse(readFileSync(path.join(folder, 'config.json')));
  const file = readFileSync(path.join(folder, 'model.safetensors'));
  const data = 8 + Number(file.readBigUInt64LE());
  const header = JSON.parse(file.subarray(8, data));
  const { n_embd: channels, n_head: heads, n_layer: layers, vocab_size: vocabulary, layer_norm_epsilon: epsilon } = config;
  const size = channels / heads;

  const nodes = [];
  const initializers = [];
  const inputs = [valueInfo('ids', 'int64', [1, 'T']), valueInfo('positions', 'int64', [1, 'T']), valueInfo('mask', 'float', ['T', 'S'])];
  const outputs = [valueInfo('logits', 'float', [1, vocabulary])];
  const add = (type, from, to, attributes) => (nodes.push(node(type, from, [].concat(to), attributes)), to);
  const constant = (name, type, dims, values) => (initializers.push(tensor(name, type, dims, Buffer.from(values.buffer))), name);
  const weight = (name) => {
    const { shape, data_offsets: [begin, end] } = header[name];
    initializers.push(tensor(name, 'float', shape, file.subarray(data + begin, data + end)));
    return name;
  };
  const integers = (name, values) => constant(name, 'int64', [values.length], BigInt64Array.from(values.map(BigInt)));
  const norm = (name, from) => add('LayerNormalization', [from, weight(`${name}.weight`), weight(`${name}.bias`)], `${name}.out`, { axis: -1, epsilon });
  const linear = (name, from) => add('Add', [add('MatMul', [from, weight(`${name}.weight`)], `${name}.product`), weight(`${name}.bias`)], `${name}.out`);

  const split = integers('split', [channels, channels, channels]);
  const byHeads = integers('by heads', [0, 0, heads, size]);
  const joined = integers('joined', [0, 0, channels]);
  const scale = constant('scale', 'float', [], Float32Array.of(1 / Math.sqrt(size)));
  let stream = add('Add', [add('Gather', [weight('wte.weight'), 'ids'], 'tokens'), add('Gather', [weight('wpe.weight'), 'positions'], 'places')], 'stream');
  for (let layer = 0; layer < layers; ++layer) {
    const at = (name) => `h.${layer}.${name}`;
    const parts = ['query', 'key', 'value'];
    add('Split', [linear(at('attn.c_attn'), norm(at('ln_1'), stream)), split], parts.map((part) => at(`${part}.flat`)), { axis: -1 });
    for (const part of parts) add('Transpose', [add('Reshape', [at(`${part}.flat`), byHeads], at(`${part}.parted`))], at(part), { perm: [0, 2, 1, 3] });
    for (const part of ['key', 'value']) {
      inputs.push(valueInfo(`past.${layer}.${part}`, 'float', [1, heads, 'P', size]));
      outputs.push(valueInfo(`present.${layer}.${part}`, 'float', [1, heads, 'S', size]));
      add('Concat', [`past.${layer}.${part}`, at(part)], `present.${layer}.${part}`, { axis: 2 });
    }
    const turned = add('Transpose', [`present.${layer}.key`], at('turned'), { perm: [0, 1, 3, 2] });
    const scores = add('Mul', [add('MatMul', [at('query'), turned], at('products')), scale], at('scores'));
    const pattern = add('Softmax', [add('Add', [scores, 'mask'], at('masked'))], at('pattern'), { axis: -1 });
    const mixed = add('Transpose', [add('MatMul', [pattern, `present.${layer}.value`], at('mixed'))], at('z'), { perm: [0, 2, 1, 3] });
    stream = add('Add', [stream, linear(at('attn.c_proj'), add('Reshape', [mixed, joined], at('joined')))], at('middle'));
    const hidden = add('Gelu', [linear(at('mlp.c_fc'), norm(at('ln_2'), stream))], at('hidden'), { approximate: 'tanh' });
    stream = add('Add', [stream, linear(at('mlp.c_proj'), hidden)], at('stream'));
  }
  const last = constant('last', 'int64', [], BigInt64Array.of(-1n));
  add('Gemm', [add('Gather', [norm('ln_f', stream), last], 'end', { axis: 1 }), 'wte.weight'], 'logits', { transB: 1 });

  const graph = [
    ...nodes.map((each) => bytes(1, each)), bytes(2, 'gpt2'), ...initializers.map((each) => bytes(5, each)),
    ...inputs.map((each) => bytes(11, each)), ...outputs.map((each) => bytes(12, each)),
  ];
  return Buffer.concat([integer(1, 9), bytes(7, Buffer.concat(graph)), bytes(8, integer(2, 20))]);
}
