#include "train/corpus.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text_lines.h"
#include "base/utf8.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {

Corpus::Corpus(const TrainRequest& request) {
  require(!request.data.empty(), ErrorCode::invalid_argument,
          "training needs at least one text file (--data)");
  Texts training;
  for (const auto& path : request.data) {
    files_.emplace_back(path);
    training.push_back(without_byte_order_mark(files_.back().text()));
  }
  if (request.validation.empty()) {
    split_ = split_texts(training, request.settings.validation_fraction);
  } else {
    files_.emplace_back(request.validation);
    const std::string_view held_out = without_byte_order_mark(files_.back().text());
    require(!held_out.empty(), ErrorCode::invalid_argument, "the validation text '{}' is empty",
            request.validation.string());
    split_ = {.training = training, .validation = {held_out}};
  }
  const auto has_text = [](const Texts& texts) {
    return std::ranges::any_of(texts, [](std::string_view text) { return !text.empty(); });
  };
  const std::string first = request.data.front().string();
  require(has_text(training), ErrorCode::invalid_argument, "the training data is empty ('{}')",
          first);
  require(has_text(split_.training), ErrorCode::invalid_argument,
          "'{}' is too short to split off {} of it for validation: give more text, or "
          "--validation FILE",
          first, request.settings.validation_fraction);
}

std::string Corpus::drop_unknown(const CharacterTokenizer& learned) {
  std::int64_t dropped = 0;
  std::set<std::string> characters;
  for (std::string_view& text : split_.validation) {
    std::string known;
    std::size_t copied = 0;  // bytes of the text
    for (std::size_t i = 0; i < text.size();) {
      const Utf8Character character = read_utf8(text, i);
      const std::size_t begin = i;
      i += character.length;
      // What is not UTF-8 is refused where it is encoded.
      if (!character.valid || learned.knows(character.code_point)) continue;
      known.append(text, copied, begin - copied);
      copied = i;
      ++dropped;
      characters.emplace(text.substr(begin, character.length));
    }
    if (copied > 0) text = known_.emplace_back(known.append(text, copied));
  }
  if (dropped == 0) return "";
  constexpr std::size_t most_shown = 8;
  std::string shown;
  std::size_t named = 0;
  for (const std::string& character : characters) {
    if (named++ == most_shown) break;
    shown += " " + in_quotes(character);
  }
  if (characters.size() > most_shown) shown += " …";
  return fmt::format(
      "{} characters of the validation text are left out of it: the training text, from which the "
      "vocabulary was learned, does not have{}",
      dropped, shown);
}

std::unique_ptr<Tokenizer> choose_tokenizer(const TrainSettings& settings, const Corpus& corpus,
                                            const ProgressCallback& progress, StopFlag stop) {
  const Texts& texts = corpus.training();
  if (settings.tokenizer == "char") return train_character_tokenizer(texts);
  if (settings.tokenizer != "bpe") return load_tokenizer(settings.tokenizer);
  BytePairTrainingOptions options;
  options.vocabulary_size = static_cast<std::int32_t>(settings.model.vocabulary_size);
  if (settings.task == Task::masked) options.special_tokens.emplace_back("<mask>");
  return train_byte_pair_tokenizer(texts, options, progress, stop);
}

}  // namespace heed
