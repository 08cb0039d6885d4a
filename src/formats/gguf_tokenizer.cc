#include "formats/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf_fields.h"
#include "formats/gguf_pre_tokenizers.h"
#include "formats/gguf_sentence_pieces.h"
#include "model/architecture.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/metaspace_tokenizer.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/unigram_tokenizer.h"
#include "tokenizer/word_piece_tokenizer.h"

namespace heed {
namespace {

constexpr std::string_view prefix = "tokenizer.ggml.";
constexpr const char* whole_key = "tokenizer.huggingface.json";
constexpr std::int64_t max_tokens = max_extent;

class TokenizerReader {
 public:
  explicit TokenizerReader(const GgufFile& file) : fields_(file) {}

  std::unique_ptr<Tokenizer> read() {
    const std::string model = fields_.find_text(key("model")).value_or("none");
    if (model == "none" || model == "no_vocab") return read_whole();
    require(model == "gpt2" || model == "llama" || model == "t5" || model == "bert",
            ErrorCode::unsupported,
            "{}: '{}' is '{}'; heed reads tokenizers of gpt2, llama, t5 and bert", source(),
            key("model"), model);
    read_tokens();
    if (model == "gpt2") return byte_pairs();
    if (model == "bert") return word_pieces();
    if (const auto own = find_gguf_sentence_pieces(fields_)) return sentence_piece_model(*own);
    return model == "llama" ? sentence_pieces() : unigrams();
  }

 private:
  static std::string key(std::string_view name) { return fmt::format("{}{}", prefix, name); }
  const std::string& source() const { return fields_.source(); }

  std::unique_ptr<Tokenizer> read_whole() const {
    const auto text = fields_.find_text(whole_key);
    if (!text) return nullptr;
    return parse_tokenizer_json(*text, fmt::format("{}: '{}'", source(), whole_key));
  }

  void read_tokens() {
    const std::string name = key("tokens");
    const auto texts = fields_.need(name, fields_.find_texts(name));
    require(!texts.empty() && std::ssize(texts) <= max_tokens, ErrorCode::corrupt_data,
            "{}: '{}' holds {} tokens; expected 1 to {}", source(), name, texts.size(), max_tokens);
    types_.assign(texts.size(), GgufTokenType::normal);
    const std::string types_key = key("token_type");
    if (const auto types = fields_.find_integers(types_key)) {
      require_a_token_each(types_key, types->size(), texts.size());
      for (std::size_t id = 0; id < types->size(); ++id) {
        const std::int64_t type = (*types)[id];
        require(type >= 1 && type <= 6, ErrorCode::corrupt_data,
                "{}: '{}' is {} for token {}; expected 1 to 6", source(), types_key, type, id);
        types_[id] = static_cast<GgufTokenType>(type);
      }
    }
    for (std::size_t id = 0; id < texts.size(); ++id) {
      const bool is_used = types_[id] != GgufTokenType::unused;
      require(is_valid_utf8(texts[id]), ErrorCode::corrupt_data,
              "{}: token {} of '{}' is {}, which is not text in UTF-8", source(), id, name,
              in_quotes(texts[id]));
      tokens_.emplace_back(is_used ? texts[id] : std::string_view());
      if (!is_used || texts[id].empty()) continue;
      const bool is_added = is_control(id) || types_[id] == GgufTokenType::user_defined;
      if (is_added) added_.push_back(added_token(static_cast<std::int32_t>(id)));
    }
  }

  bool is_control(std::size_t id) const {
    return types_[id] == GgufTokenType::control || types_[id] == GgufTokenType::unknown;
  }

  AddedToken added_token(std::int32_t id) const {
    const auto index = static_cast<std::size_t>(id);
    return {.id = id, .content = tokens_[index], .special = is_control(index)};
  }

  void require_a_token_each(const std::string& name, std::size_t values, std::size_t tokens) const {
    require(values == tokens, ErrorCode::corrupt_data,
            "{}: '{}' holds {} values; expected {}, one a token", source(), name, values, tokens);
  }

  // A token with a role; the usual one of its kind where no key names it.
  std::optional<std::int32_t> token_of(std::string_view role, std::int64_t usual = -1) const {
    const auto id = fields_.find_integer(key(role), {.least = 0, .most = std::ssize(tokens_) - 1});
    if (id) return static_cast<std::int32_t>(*id);
    if (usual < 0 || usual >= std::ssize(tokens_)) return std::nullopt;
    return static_cast<std::int32_t>(usual);
  }

  bool flag(std::string_view name, bool usual) const {
    return fields_.find_boolean(key(name)).value_or(usual);
  }

  // The tokens around a text, which are special whatever their type is.
  TextTemplate template_of(std::optional<std::int32_t> first, std::optional<std::int32_t> last,
                           bool adds_first, bool adds_last) {
    TextTemplate around;
    const auto add = [&](std::string_view flag_name, std::optional<std::int32_t> id,
                         std::vector<std::int32_t>& ids) {
      require(id.has_value(), ErrorCode::corrupt_data,
              "{}: '{}' is true, but no key names the token", source(), key(flag_name));
      make_special(*id);
      ids.push_back(*id);
    };
    if (flag("add_bos_token", adds_first)) add("add_bos_token", first, around.before);
    if (flag("add_eos_token", adds_last)) add("add_eos_token", last, around.after);
    return around;
  }

  void make_special(std::int32_t id) {
    const auto found = std::ranges::find(added_, id, &AddedToken::id);
    if (found != added_.end()) {
      found->special = true;
      return;
    }
    AddedToken token = added_token(id);
    token.special = true;
    if (!token.content.empty()) added_.push_back(std::move(token));
  }

  std::vector<double> scores() const {
    const std::string name = key("scores");
    std::vector<double> values = fields_.need(name, fields_.find_numbers(name));
    require_a_token_each(name, values.size(), tokens_.size());
    return values;
  }

  std::vector<std::pair<std::string, std::string>> merges() const {
    const std::string name = key("merges");
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string_view text : fields_.need(name, fields_.find_texts(name))) {
      const std::size_t space = text.find(' ', 1);
      require(space != std::string_view::npos && space + 1 < text.size(), ErrorCode::corrupt_data,
              "{}: merge {} of '{}' is {}; expected two tokens with a space between them", source(),
              pairs.size(), name, in_quotes(text));
      pairs.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    return pairs;
  }

  std::unique_ptr<Tokenizer> byte_pairs() {
    const bool is_gpt2 = fields_.find_text("general.architecture") == "gpt2";
    const std::string pre_key = key("pre");
    // Files from before the key have the words of their family, which no one names for others.
    const std::string pre = fields_.find_text(pre_key).value_or(is_gpt2 ? "gpt-2" : "default");
    const GgufPreTokenizer* const known = find_gguf_pre_tokenizer(pre);
    require(known != nullptr, ErrorCode::unsupported,
            "{}: '{}' is '{}'; heed knows the words of {}", source(), pre_key, pre,
            gguf_pre_tokenizer_names());
    const bool begins = known->adds_beginning && token_of("bos_token_id").has_value();
    TextTemplate around =
        template_of(token_of("bos_token_id"), token_of("eos_token_id"), begins, false);
    BytePairDefinition definition = read_byte_letters(
        {.tokens = std::move(tokens_), .merges = merges(), .added = std::move(added_)}, source());
    definition.pattern = known->pattern;
    definition.ignore_merges = known->ignores_merges;
    definition.text_template = std::move(around);
    return std::make_unique<BytePairTokenizer>(std::move(definition), source());
  }

  // SentencePiece merges the pair whose token has the best score. As rules: every way to make a
  // token of two others, by descending score.
  std::vector<std::pair<std::string, std::string>> merges_by_score(
      const std::vector<double>& scores) const {
    struct Rule {
      double score;
      std::size_t token, left_bytes;
    };
    const auto is_piece = [&](std::size_t id) {
      return !tokens_[id].empty() && types_[id] != GgufTokenType::byte && !is_control(id);
    };
    std::unordered_map<std::string_view, std::size_t> pieces;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      require(scores[id] == scores[id], ErrorCode::corrupt_data,
              "{}: '{}' of token {} is not a number", source(), key("scores"), id);
      if (is_piece(id)) pieces.emplace(tokens_[id], id);
    }
    std::vector<Rule> rules;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const std::string_view token = tokens_[id];
      if (!is_piece(id) || token.size() > max_sought_token) continue;
      for (std::size_t at = read_utf8(token, 0).length; at < token.size();
           at += read_utf8(token, at).length) {
        if (!pieces.contains(token.substr(0, at)) || !pieces.contains(token.substr(at))) continue;
        rules.push_back({scores[id], id, at});
      }
    }
    std::ranges::stable_sort(rules, std::greater{}, &Rule::score);
    std::vector<std::pair<std::string, std::string>> merges;
    for (const Rule& rule : rules) {
      const std::string& token = tokens_[rule.token];
      merges.emplace_back(token.substr(0, rule.left_bytes), token.substr(rule.left_bytes));
    }
    return merges;
  }

  std::unique_ptr<Tokenizer> sentence_pieces() {
    MetaspaceDefinition definition;
    definition.merges = merges_by_score(scores());
    definition.byte_fallback = std::ranges::count(types_, GgufTokenType::byte) > 0;
    const bool prepends = flag("add_space_prefix", true);
    definition.normalisation = {
        .metaspace = true, .replaces_spaces = true, .prepend_always = prepends};
    definition.strips_first_space = prepends;
    if (const auto unknown = token_of("unknown_token_id", 0)) {
      definition.unknown = tokens_[static_cast<std::size_t>(*unknown)];
    }
    definition.fuse_unknown = true;
    definition.text_template =
        template_of(token_of("bos_token_id", 1), token_of("eos_token_id", 2), true, false);
    definition.tokens = std::move(tokens_);
    definition.added = std::move(added_);
    return std::make_unique<MetaspaceTokenizer>(std::move(definition), source());
  }

  std::unique_ptr<Tokenizer> unigrams() {
    UnigramDefinition definition;
    definition.scores = scores();
    // Tokens after the last one with a score are added tokens.
    std::size_t count = tokens_.size();
    while (count > 0 && types_[count - 1] != GgufTokenType::normal) --count;
    definition.scores.resize(count);
    definition.byte_fallback = std::ranges::count(types_, GgufTokenType::byte) > 0;
    std::vector<std::unique_ptr<const NormaliserStep>> steps;
    if (const std::string map = charsmap(); !map.empty()) {
      steps.push_back(make_precompiled_step(
          encode_base64(map), fmt::format("{}: '{}'", source(), key("precompiled_charsmap"))));
    }
    definition.steps = std::make_shared<NormaliserSteps>(std::move(steps));
    definition.splits_at_white_space = flag("remove_extra_whitespaces", true);
    const bool prepends = flag("add_space_prefix", true);
    definition.prepend = prepends ? PrependScheme::always : PrependScheme::never;
    definition.strips_first_word = prepends;
    definition.unknown = token_of("unknown_token_id", 2).value_or(0);
    definition.text_template =
        template_of(token_of("bos_token_id"), token_of("eos_token_id", 1), false, true);
    definition.tokens = std::move(tokens_);
    definition.added = std::move(added_);
    return std::make_unique<UnigramTokenizer>(std::move(definition), source());
  }

  // As SentencePiece's library has it; the tokens that are no pieces are added ones.
  std::unique_ptr<Tokenizer> sentence_piece_model(const GgufSentencePieces& own) {
    require(own.pieces <= tokens_.size(), ErrorCode::corrupt_data,
            "{}: '{}' is of {} pieces, but there are {} tokens", source(), gguf_sentence_pieces_key,
            own.pieces, tokens_.size());
    const bool is_bpe = own.search == PieceSearch::bpe;
    SentencePieceModel model{.search = own.search,
                             .add_dummy_prefix = flag("add_space_prefix", true),
                             .remove_extra_whitespaces = flag("remove_extra_whitespaces", true)};
    const std::string name = key("tokens");
    const auto texts = fields_.need(name, fields_.find_texts(name));
    const std::vector<double> all_scores = scores();
    SentencePieceDefinition definition;
    for (std::size_t id = 0; id < own.pieces; ++id) {
      require(std::abs(all_scores[id]) <= std::numeric_limits<float>::max(),
              ErrorCode::corrupt_data, "{}: '{}' of token {} is {}", source(), key("scores"), id,
              all_scores[id]);
      model.pieces.push_back({.text = std::string(texts[id]),
                              .score = static_cast<float>(all_scores[id]),
                              .kind = static_cast<PieceKind>(types_[id])});
      if (types_[id] == GgufTokenType::byte) model.byte_fallback = true;
      if (types_[id] == GgufTokenType::unknown) definition.unknown = texts[id];
      tokens_[id] = texts[id];
    }
    model.charsmap_bytes = charsmap();
    const std::string file = write_sentence_piece_model(model);
    definition.model = file;
    definition.text_template =
        is_bpe ? template_of(token_of("bos_token_id", 1), token_of("eos_token_id", 2), true, false)
               : template_of(token_of("bos_token_id"), token_of("eos_token_id", 1), false, true);
    definition.tokens = std::move(tokens_);
    definition.added = own.added;
    definition.files = {{sentence_pieces_file(own.search), file}};
    return std::make_unique<SentencePieceTokenizer>(std::move(definition), source());
  }

  std::string charsmap() const {
    std::string map;
    const auto bytes = fields_.find_integers(key("precompiled_charsmap"));
    for (const std::int64_t byte : bytes.value_or(std::vector<std::int64_t>())) {
      map.push_back(static_cast<char>(byte & 0xFF));
    }
    return map;
  }

  // Tokens that begin a word are written with U+2581 before them, those that continue one bare.
  std::unique_ptr<Tokenizer> word_pieces() {
    WordPieceDefinition definition;
    BertNormalisation& normalisation = *definition.normalisation;
    normalisation.lowercase = flag("normalizer.lowercase", true);
    normalisation.strip_accents = flag("normalizer.strip_accents", normalisation.lowercase);
    const auto first = token_of("cls_token_id").has_value() ? token_of("cls_token_id")
                                                            : token_of("bos_token_id", 101);
    // The key is misspelt in the format.
    const auto last = token_of("seperator_token_id", 102);
    definition.text_template = template_of(first, last, true, true);
    if (const auto unknown = token_of("unknown_token_id", 100)) {
      definition.unknown = tokens_[static_cast<std::size_t>(*unknown)];
      make_special(*unknown);
    }
    // A converter that marks all but special tokens leaves no word of an added one as it is.
    std::erase_if(added_, [&](const AddedToken& token) {
      return types_[static_cast<std::size_t>(token.id)] == GgufTokenType::user_defined &&
             token.content.starts_with(metaspace_character);
    });
    std::vector<bool> is_added(tokens_.size());
    for (const AddedToken& token : added_) is_added[static_cast<std::size_t>(token.id)] = true;
    std::vector<bool> continues(tokens_.size());
    const auto ids = fields_.find_integers(gguf_continuations_key);
    for (const std::int64_t id : ids.value_or(std::vector<std::int64_t>())) {
      require(id >= 0 && id < std::ssize(tokens_), ErrorCode::corrupt_data,
              "{}: '{}' holds the token {}; expected 0 to {}", source(), gguf_continuations_key, id,
              tokens_.size() - 1);
      continues[static_cast<std::size_t>(id)] = true;
    }
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      std::string& token = tokens_[id];
      if (is_added[id] || (token.empty() && !continues[id])) continue;
      const bool begins = token.starts_with(metaspace_character) && !continues[id];
      token = begins ? token.substr(metaspace_character.size()) : definition.continuation + token;
    }
    definition.tokens = std::move(tokens_);
    definition.added = std::move(added_);
    return std::make_unique<WordPieceTokenizer>(std::move(definition), source());
  }

  GgufFields fields_;
  std::vector<std::string> tokens_;  // by id; empty: unused
  std::vector<GgufTokenType> types_;
  std::vector<AddedToken> added_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_gguf_tokenizer(const GgufFile& file) {
  return TokenizerReader(file).read();
}

std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& path) {
  return read_gguf_tokenizer(open_gguf_parts(path).front());
}

Json gguf_tokenizer_config(const GgufFile& file) {
  const GgufFields fields(file);
  Json config = Json::object();
  const std::string tokens_key = fmt::format("{}tokens", prefix);
  if (const auto tokens = fields.find_texts(tokens_key); tokens && !tokens->empty()) {
    for (const auto& [name, role] :
         {std::pair{"bos_token_id", "bos_token"}, std::pair{"eos_token_id", "eos_token"},
          std::pair{"unknown_token_id", "unk_token"}, std::pair{"padding_token_id", "pad_token"}}) {
      const auto id = fields.find_integer(fmt::format("{}{}", prefix, name),
                                          {.least = 0, .most = std::ssize(*tokens) - 1});
      if (id) config[role] = std::string((*tokens)[static_cast<std::size_t>(*id)]);
    }
  }
  if (const auto own = find_gguf_sentence_pieces(fields)) {
    describe_sentence_pieces(*own, fields, config);
  }
  if (const auto chat = fields.find_text("tokenizer.chat_template"))
    config["chat_template"] = *chat;
  return config;
}

}  // namespace heed
