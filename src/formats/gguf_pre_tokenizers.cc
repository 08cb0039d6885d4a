#include "formats/gguf_pre_tokenizers.h"

#include <algorithm>
#include <array>

namespace heed {
namespace {

// As llama.cpp's vocabulary has them (src/llama-vocab.cpp), where heed has the same words.
constexpr std::array pre_tokenizers = {
    GgufPreTokenizer{"gpt-2", WordPattern::gpt2},
    GgufPreTokenizer{"phi-2", WordPattern::gpt2},
    GgufPreTokenizer{"mpt", WordPattern::gpt2},
    GgufPreTokenizer{"olmo", WordPattern::gpt2},
    GgufPreTokenizer{"jais", WordPattern::gpt2},
    GgufPreTokenizer{"mellum", WordPattern::gpt2},
    GgufPreTokenizer{"llama-bpe", WordPattern::llama3, true, true},
    GgufPreTokenizer{"llama3", WordPattern::llama3, true, true},
    GgufPreTokenizer{"llama-v3", WordPattern::llama3, true, true},
    GgufPreTokenizer{"falcon3", WordPattern::llama3, true, true},
    GgufPreTokenizer{"dbrx", WordPattern::llama3},
    GgufPreTokenizer{"smaug-bpe", WordPattern::llama3},
    GgufPreTokenizer{"qwen2", WordPattern::qwen2},
    GgufPreTokenizer{"deepseek-r1-qwen", WordPattern::qwen2},
    GgufPreTokenizer{"stablelm2", WordPattern::qwen2},
    GgufPreTokenizer{"megrez", WordPattern::qwen2},
    GgufPreTokenizer{"gpt-4o", WordPattern::o200k},
    GgufPreTokenizer{"tekken", WordPattern::tekken, true, true},
    GgufPreTokenizer{"starcoder", WordPattern::gpt2_digits},
    GgufPreTokenizer{"smollm", WordPattern::gpt2_digits},
    GgufPreTokenizer{"refact", WordPattern::gpt2_digits},
    GgufPreTokenizer{"command-r", WordPattern::gpt2_digits},
    GgufPreTokenizer{"codeshell", WordPattern::gpt2_digits},
    GgufPreTokenizer{"exaone", WordPattern::gpt2_digits},
    GgufPreTokenizer{"falcon", WordPattern::falcon},
};

}  // namespace

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  const auto found = std::ranges::find(pre_tokenizers, name, &GgufPreTokenizer::name);
  return found == pre_tokenizers.end() ? nullptr : &*found;
}

const GgufPreTokenizer* find_gguf_pre_tokenizer_like(const GgufPreTokenizer& wanted) {
  const auto found = std::ranges::find_if(pre_tokenizers, [&](const GgufPreTokenizer& each) {
    return each.pattern == wanted.pattern && each.ignores_merges == wanted.ignores_merges;
  });
  return found == pre_tokenizers.end() ? nullptr : &*found;
}

std::string gguf_pre_tokenizer_names() {
  std::string names;
  for (const GgufPreTokenizer& each : pre_tokenizers) {
    names += names.empty() ? "" : ", ";
    names += each.name;
  }
  return names;
}

}  // namespace heed
