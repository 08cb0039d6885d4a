#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "formats/gguf_pre_tokenizers.h"
#include "formats/gguf_sentence_pieces.h"
#include "formats/gguf_tokenizer.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

constexpr const char* written_source = "the tokenizer";

// What the keys say of a tokenizer, from its tokenizer.json.
class TokenizerWriter {
 public:
  TokenizerWriter(const Json& document, std::int64_t rows)
      : model_(document.at("model")),
        added_(read_added_tokens(document, written_source)),
        tokens_(static_cast<std::size_t>(rows)),
        types_(static_cast<std::size_t>(rows), GgufTokenType::unused),
        scores_(static_cast<std::size_t>(rows), 0.0F) {
    for (std::size_t id = 0; id < tokens_.size(); ++id) tokens_[id] = fmt::format("[PAD{}]", id);
  }

  void byte_pairs(const GgufPreTokenizer& pre, GgufMetadata& metadata) {
    read_vocabulary();
    metadata.add("tokenizer.ggml.model", std::string_view("gpt2"));
    metadata.add("tokenizer.ggml.pre", pre.name);
    add_tokens(metadata);
    metadata.add("tokenizer.ggml.merges", std::span<const std::string>(merges()));
  }

  // The score of a token is how early a merge makes it.
  void sentence_pieces(bool prepends, GgufMetadata& metadata) {
    read_vocabulary();
    for (std::size_t byte = 0; byte < 256; ++byte) {
      set_type(byte_token_text(static_cast<int>(byte)), GgufTokenType::byte);
    }
    if (const Json* const unknown = find_json_member(model_, "unk_token")) {
      set_type(unknown->get<std::string>(), GgufTokenType::unknown);
    }
    float score = 0;
    std::unordered_map<std::string, bool> seen;
    for (const std::string& merge : merges()) {
      std::string token = merge;
      token.erase(token.find(' ', 1), 1);
      const auto id = ids_.find(token);
      if (id == ids_.end() || !seen.emplace(token, true).second) continue;
      scores_[id->second] = score--;
    }
    for (const auto& [token, id] : ids_) {
      const bool is_merged = seen.contains(token);
      if (!is_merged && types_[id] == GgufTokenType::normal) scores_[id] = score;
    }
    metadata.add("tokenizer.ggml.model", std::string_view("llama"));
    metadata.add("tokenizer.ggml.pre", std::string_view("default"));
    add_tokens(metadata);
    add_scores(metadata);
    metadata.add("tokenizer.ggml.add_space_prefix", prepends);
    if (const auto unknown = id_of("unk_token")) add_role("unknown", *unknown, metadata);
  }

  void unigrams(const Json* normalizer, GgufMetadata& metadata) {
    const Json& vocabulary = model_.at("vocab");
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      place(vocabulary[id][0].get<std::string>(), id, GgufTokenType::normal);
      scores_[id] = static_cast<float>(vocabulary[id][1].get<double>());
    }
    place_added();
    const auto unknown = model_.at("unk_id").get<std::size_t>();
    types_.at(unknown) = GgufTokenType::unknown;
    metadata.add("tokenizer.ggml.model", std::string_view("t5"));
    metadata.add("tokenizer.ggml.pre", std::string_view("default"));
    add_tokens(metadata);
    add_scores(metadata);
    metadata.add("tokenizer.ggml.add_space_prefix", true);
    metadata.add("tokenizer.ggml.remove_extra_whitespaces", true);
    if (const Json* const map = normalizer == nullptr
                                    ? nullptr
                                    : find_json_member(*normalizer, "precompiled_charsmap")) {
      const std::string bytes = decode_base64(map->get<std::string>()).value_or("");
      metadata.add("tokenizer.ggml.precompiled_charsmap",
                   std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    }
    add_role("unknown", unknown, metadata);
  }

  // U+2581 before tokens that begin a word, nothing before those that continue one.
  void word_pieces(const Json* normalizer, GgufMetadata& metadata) {
    read_vocabulary();
    const std::string continuation = model_.at("continuing_subword_prefix").get<std::string>();
    std::vector<std::int32_t> hidden;  // continuations that look like beginnings, or like nothing
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (types_[id] != GgufTokenType::normal) continue;
      std::string& token = tokens_[id];
      const bool continues = token.starts_with(continuation);
      token =
          continues ? token.substr(continuation.size()) : std::string(metaspace_character) + token;
      if (continues && (token.empty() || token.starts_with(metaspace_character))) {
        hidden.push_back(static_cast<std::int32_t>(id));
      }
    }
    metadata.add("tokenizer.ggml.model", std::string_view("bert"));
    metadata.add("tokenizer.ggml.pre", std::string_view("default"));
    add_tokens(metadata);
    if (!hidden.empty()) {
      metadata.add(gguf_continuations_key, std::span<const std::int32_t>(hidden));
    }
    if (normalizer != nullptr) {
      for (const char* const step : {"lowercase", "strip_accents"}) {
        const bool is_done = json_boolean_member(*normalizer, step, true, written_source);
        metadata.add(fmt::format("tokenizer.ggml.normalizer.{}", step), is_done);
      }
    }
    if (const auto unknown = id_of("unk_token")) add_role("unknown", *unknown, metadata);
    for (const char* const mask : {"[MASK]", "<mask>"}) {
      const auto id = ids_.find(mask);
      if (id == ids_.end()) continue;
      add_role("mask", id->second, metadata);
      break;
    }
  }

 private:
  void place(std::string token, std::size_t id, GgufTokenType type) {
    require(id < tokens_.size(), ErrorCode::corrupt_data,
            "the tokenizer has a token {}, but the model's embedding has {} rows", id,
            tokens_.size());
    ids_[token] = id;
    tokens_[id] = std::move(token);
    types_[id] = type;
  }

  void read_vocabulary() {
    for (const auto& [token, id] : model_.at("vocab").items()) {
      place(token, id.get<std::size_t>(), GgufTokenType::normal);
    }
    place_added();
  }

  void place_added() {
    for (const AddedToken& token : added_) {
      place(token.content, static_cast<std::size_t>(token.id),
            token.special ? GgufTokenType::control : GgufTokenType::user_defined);
    }
  }

  void set_type(const std::string& token, GgufTokenType type) {
    const auto found = ids_.find(token);
    if (found != ids_.end()) types_[found->second] = type;
  }

  std::optional<std::size_t> id_of(const char* key) const {
    const Json* const token = find_json_member(model_, key);
    const auto found = token == nullptr ? ids_.end() : ids_.find(token->get<std::string>());
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<std::string> merges() const {
    std::vector<std::string> merges;
    for (const auto& [left, right] : read_merges(model_, written_source)) {
      merges.push_back(fmt::format("{} {}", left, right));
    }
    return merges;
  }

  void add_tokens(GgufMetadata& metadata) const {
    metadata.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens_));
    std::vector<std::int32_t> types;
    for (const GgufTokenType type : types_) types.push_back(static_cast<std::int32_t>(type));
    metadata.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
  }

  void add_scores(GgufMetadata& metadata) const {
    metadata.add("tokenizer.ggml.scores", std::span<const float>(scores_));
  }

  static void add_role(std::string_view role, std::size_t id, GgufMetadata& metadata) {
    metadata.add(fmt::format("tokenizer.ggml.{}_token_id", role), static_cast<std::uint32_t>(id));
  }

  const Json& model_;
  std::vector<AddedToken> added_;
  std::vector<std::string> tokens_;
  std::vector<GgufTokenType> types_;
  std::vector<float> scores_;
  std::unordered_map<std::string, std::size_t> ids_;
};

void add_token(std::string_view key, std::int64_t id, GgufMetadata& metadata) {
  if (id < 0) return;
  metadata.add(fmt::format("tokenizer.ggml.{}", key), static_cast<std::uint32_t>(id));
}

// Which tokens begin and end a text, and whether they are put around it.
void write_roles(const Tokenizer& tokenizer, GgufTokenRoles roles, GgufMetadata& metadata) {
  const auto& [before, after] = tokenizer.text_template();
  if (!before.empty()) roles.beginning = before.front();
  if (!after.empty()) roles.end = after.back();
  add_token("bos_token_id", roles.beginning, metadata);
  add_token("padding_token_id", roles.padding, metadata);
  if (tokenizer.kind() == TokenizerKind::word_piece) {  // which ends no text that is generated
    add_token("cls_token_id", roles.beginning, metadata);
    add_token("seperator_token_id", roles.end, metadata);
  } else {
    add_token("eos_token_id", roles.end, metadata);
  }
  metadata.add("tokenizer.ggml.add_bos_token", !before.empty());
  metadata.add("tokenizer.ggml.add_eos_token", !after.empty());
}

// Merges as SentencePiece has them: tokens by score, and every way to make one.
Json merges_by_token(const Json& model) {
  Json tokens = Json::array();
  std::unordered_set<std::string> seen;
  auto pairs = read_merges(model, written_source);
  for (const auto& [left, right] : pairs) {
    if (seen.insert(left + right).second) tokens.push_back(left + right);
  }
  std::ranges::sort(pairs);
  return {{"tokens", tokens}, {"pairs", pairs}};
}

// What a tokenizer.json says of how texts become tokens; without what no key can say: that texts
// are normalised to form C, and which parts of a text get a space.
Json compared(const Tokenizer& tokenizer) {
  Json document = Json::parse(tokenizer.to_json());
  Json same = {{"model", document["model"]}, {"added", Json::array()}};
  if (tokenizer.kind() == TokenizerKind::metaspace) {
    same["model"]["merges"] = merges_by_token(document["model"]);
    same["model"].erase("fuse_unk");  // there are bytes for unknown characters
  } else {
    same["pre_tokenizer"] = document["pre_tokenizer"];
    const bool is_byte_pair = tokenizer.kind() == TokenizerKind::byte_pair;
    if (!is_byte_pair) same["normalizer"] = document["normalizer"];
  }
  const bool is_word_piece = tokenizer.kind() == TokenizerKind::word_piece;
  if (is_word_piece) same["decoder"] = document["decoder"];
  for (const Json& token : document["added_tokens"]) {
    same["added"].push_back({token["id"], token["content"], token["special"]});
    if (is_word_piece) same["added"].back().push_back(token.value("single_word", false));
  }
  return same;
}

// False for a kind that no value of `tokenizer.ggml.model` describes.
bool add_document(const Tokenizer& tokenizer, std::int64_t rows, GgufMetadata& metadata) {
  const Json document = Json::parse(tokenizer.to_json());
  TokenizerWriter writer(document, rows);
  switch (tokenizer.kind()) {
    case TokenizerKind::byte_pair: {
      const auto& byte_pairs = dynamic_cast<const BytePairTokenizer&>(tokenizer);
      const GgufPreTokenizer* const pre =
          find_gguf_pre_tokenizer_like({.name = {},
                                        .pattern = byte_pairs.pattern(),
                                        .ignores_merges = byte_pairs.ignores_merges()});
      if (pre == nullptr) return false;
      writer.byte_pairs(*pre, metadata);
      return true;
    }
    case TokenizerKind::metaspace: {
      const std::vector<std::int32_t> space = tokenizer.encode("a");
      writer.sentence_pieces(!space.empty() && tokenizer.token_bytes(space[0]).starts_with(' '),
                             metadata);
      return true;
    }
    case TokenizerKind::unigram:
      writer.unigrams(find_json_member(document, "normalizer"), metadata);
      return true;
    case TokenizerKind::word_piece:
      writer.word_pieces(find_json_member(document, "normalizer"), metadata);
      return true;
    case TokenizerKind::character:
    case TokenizerKind::sentence_piece: break;
  }
  return false;
}

// Nothing for one that would be read as another.
std::optional<GgufMetadata> as_ggml(const Tokenizer& tokenizer, std::int64_t rows,
                                    const GgufTokenRoles& roles) {
  const auto& [before, after] = tokenizer.text_template();
  if (before.size() > 1 || after.size() > 1) return std::nullopt;
  GgufMetadata metadata;
  const auto* const pieces = dynamic_cast<const SentencePieceTokenizer*>(&tokenizer);
  if (pieces != nullptr) {
    add_sentence_pieces(*pieces, rows, metadata);
  } else if (!add_document(tokenizer, rows, metadata)) {
    return std::nullopt;
  }
  write_roles(tokenizer, roles, metadata);
  const std::string bytes = gguf_header(metadata, {});
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), written_source);
  const auto read = read_gguf_tokenizer(file);
  const bool is_same = pieces != nullptr
                           ? are_same(dynamic_cast<const SentencePieceTokenizer&>(*read), *pieces)
                           : compared(*read) == compared(tokenizer);
  return is_same ? std::optional(std::move(metadata)) : std::nullopt;
}

}  // namespace

void write_gguf_tokenizer(const Tokenizer& tokenizer, std::int64_t rows,
                          const GgufTokenRoles& roles, GgufMetadata& metadata) {
  const auto* const pieces = dynamic_cast<const SentencePieceTokenizer*>(&tokenizer);
  const std::string why_not = pieces == nullptr ? "" : why_no_gguf_sentence_pieces(*pieces);
  require(why_not.empty(), ErrorCode::unsupported, "GGUF files cannot hold this tokenizer: {}",
          why_not);
  if (const auto written = as_ggml(tokenizer, rows, roles)) return metadata.add(*written);
  require(pieces == nullptr, ErrorCode::unsupported,
          "GGUF files cannot hold this tokenizer: what its files add to its SentencePiece model "
          "would be read as something else");
  metadata.add("tokenizer.ggml.model", std::string_view("none"));
  metadata.add("tokenizer.huggingface.json", std::string_view(tokenizer.to_json()));
  add_token("bos_token_id", roles.beginning, metadata);
  add_token("eos_token_id", roles.end, metadata);
  add_token("padding_token_id", roles.padding, metadata);
}

}  // namespace heed
