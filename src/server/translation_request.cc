#include "server/translation_request.h"

namespace heed::server {
namespace {

// Errors of a text are those of its field.
std::vector<std::int32_t> read_source(const std::string& text, const LoadedTranslator& translator,
                                      const std::string& path) {
  try {
    return translator.encode(text, path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw FieldError(path, field_code::invalid_value, error.what());
  }
}

SourceTokens read_sources(const Fields& fields, const LoadedTranslator& translator,
                          const TranslationLimits& limits) {
  const Json* const input = fields.find("input");
  require_field(input != nullptr, "input", field_code::missing, "the request has no \"input\"");
  const std::vector<std::string> texts = fields.strings("input", limits.inputs);
  require_field(!texts.empty(), "input", field_code::invalid_value, "input holds no texts");
  SourceTokens sources;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string path = input->is_string() ? "input" : fmt::format("input[{}]", i);
    sources.add(read_source(texts[i], translator, path));
  }
  return sources;
}

}  // namespace

TranslationRequest read_translation_request(const Fields& fields,
                                            const LoadedTranslator& translator,
                                            const TranslationLimits& limits) {
  constexpr double highest_penalty = 100;
  const std::int64_t context = translator.model.architecture().decoder().context;
  TranslationRequest request;
  BeamOptions& search = request.search;
  search.beams = fields.integer("beams", 1, limits.beams).value_or(search.beams);
  search.n_best = fields.integer("n", 1, limits.beams).value_or(1);
  require_field(search.n_best <= search.beams, "n", field_code::invalid_value,
                "n ({}) must not be greater than beams ({})", search.n_best, search.beams);
  search.length_penalty = fields.number("length_penalty", -highest_penalty, highest_penalty)
                              .value_or(search.length_penalty);
  search.max_length = fields.integer("max_tokens", 1, context).value_or(0);
  request.sources = read_sources(fields, translator, limits);
  return request;
}

}  // namespace heed::server
