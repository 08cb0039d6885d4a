// Parts of tokenizer.json that matrix.mjs and published.mjs make documents of.

export function added(id, content, flags = {}) {
  return {
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: false,
    ...flags,
  };
}

export const BYTE_LEVEL = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };

// The pre-tokenizer and decoder Metaspace.
export function spaces(prepend_scheme, split) {
  return { type: "Metaspace", replacement: "▁", prepend_scheme, split };
}

export const BERT = { clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true };

// BERT's words and pieces.
export function wordPiece({ added_tokens, vocab, normalizer = {}, post_processor = null }) {
  return {
    version: "1.0",
    added_tokens,
    normalizer: { type: "BertNormalizer", ...BERT, ...normalizer },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor,
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      type: "WordPiece",
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
      vocab,
    },
  };
}

// Byte-level BPE, as GPT-2's.
export function byteLevel({ added_tokens, vocab, merges, normalizer = null, post_processor = null }) {
  return {
    version: "1.0",
    added_tokens,
    normalizer,
    pre_tokenizer: BYTE_LEVEL,
    post_processor,
    decoder: BYTE_LEVEL,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: "",
      end_of_word_suffix: "",
      fuse_unk: false,
      vocab,
      merges,
    },
  };
}
