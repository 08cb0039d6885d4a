// The functions of the facade that only pass on: arrays, tokens, tokenizers, patching sweeps and
// the microworld.
#include "engine/facade.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "engine/loaded_model.h"
#include "heed/microworld.h"
#include "heed/tokenizer.h"
#include "heed/tokens.h"
#include "microscope/patch/patch.h"
#include "microworld/microworld.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {

Array make_array(Tensor<float> tensor) {
  std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  const auto owner = std::make_shared<Tensor<float>>(std::move(tensor));
  return {std::move(shape), std::shared_ptr<float[]>(owner, owner->data())};
}

Trace with_shapes(Trace trace) {
  for (TracedArray& array : trace.arrays) array.values = array.values.reshaped(array.shape);
  return trace;
}

std::vector<std::int32_t> prompt_tokens(const Model& model, std::string_view text) {
  return ModelAccess::of_one_text(model).encode(text);
}

std::vector<std::int32_t> part_tokens(const Model& model, std::string_view text) {
  return ModelAccess::loaded(model).encode_part(text);
}

std::vector<std::string> token_texts(const Model& model, std::span<const std::int32_t> tokens) {
  return ModelAccess::loaded(model).token_bytes(tokens);
}

std::optional<std::int32_t> beginning_token(const Model& model) {
  const LoadedModel& loaded = ModelAccess::of_one_text(model);
  loaded.require_tokenizer();
  return loaded.beginning_of_text();
}

std::optional<std::int32_t> end_token(const Model& model) {
  const LoadedModel& loaded = ModelAccess::of_one_text(model);
  const std::optional<std::int32_t> usual = loaded.require_tokenizer().end_of_text();
  const std::int64_t own = loaded.transformer.specification().end_of_text;
  return own >= 0 ? static_cast<std::int32_t>(own) : usual;
}

TextTokenizer::TextTokenizer(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {}

TextTokenizer TextTokenizer::load(const std::string& name_or_path) {
  return TextTokenizer(load_model_tokenizer(name_or_path));
}

TextTokenizer TextTokenizer::learn(std::span<const std::string> texts, std::int32_t vocabulary_size,
                                   const std::atomic<bool>* stop) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return TextTokenizer(
      train_byte_pair_tokenizer(views, {.vocabulary_size = vocabulary_size}, {}, stop));
}

std::string TextTokenizer::kind() const { return tokenizer_kind_name(tokenizer_->kind()); }
std::int32_t TextTokenizer::vocabulary_size() const { return tokenizer_->vocabulary_size(); }

std::vector<std::int32_t> TextTokenizer::encode(std::string_view text) const {
  return tokenizer_->encode(text);
}

std::string TextTokenizer::decode(std::span<const std::int32_t> tokens) const {
  return tokenizer_->decode(tokens);
}

std::vector<std::string> TextTokenizer::token_texts(std::span<const std::int32_t> tokens) const {
  std::vector<std::string> texts;
  for (const std::int32_t token : tokens) texts.push_back(tokenizer_->token_bytes(token));
  return texts;
}

void TextTokenizer::save(const std::string& directory) const { tokenizer_->save(directory); }

PatchResult patch_sweep(const Model& model, const PatchRequest& request) {
  return patch_sweep(ModelAccess::loaded(model).transformer, request);
}

std::vector<std::string> patch_head_names(const Model& model, PatchGrid grid,
                                          std::string_view site) {
  const Architecture& architecture = ModelAccess::loaded(model).architecture();
  PatchRequest request;
  request.site = site;
  return patched_head_names(attention_of(architecture, patched_site(architecture, request).site),
                            patch_grid_kind(grid));
}

std::vector<std::string> microworld_kinds() {
  const auto names = microworld::story_kind_names();
  return {names.begin(), names.end()};
}

std::string microworld_story(std::uint64_t seed, std::int64_t index,
                             const std::vector<std::string>& kinds) {
  const auto names = microworld::story_kind_names();
  std::vector<microworld::StoryKind> chosen;
  for (const std::string& kind : kinds) {
    const auto found = std::ranges::find(names, kind);
    require(found != names.end(), ErrorCode::invalid_argument,
            "there is no kind of story '{}': expected one of {}", kind, fmt::join(names, ", "));
    chosen.push_back(static_cast<microworld::StoryKind>(found - names.begin()));
  }
  return microworld::to_json_line(microworld::Microworld(seed, chosen).story(index));
}

double microworld_log_probability(std::string_view text) {
  return microworld::log_probability(text);
}

}  // namespace heed
