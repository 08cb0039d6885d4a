#include "server/model_service.h"

#include <chrono>
#include <utility>

#include "engine/embedded_files.h"
#include "formats/pooling.h"
#include "server/explorer.h"
#include "server/service.h"
#include "server/translations.h"

namespace heed::server {
namespace {

std::int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// What replies and messages call the model: none of these names reveals its directory.
std::vector<std::string> served_names(const ServeOptions& options, const std::string& own) {
  return options.aliases.empty() ? std::vector{own} : options.aliases;
}

// The one that heed carries; null in builds without it.
std::unique_ptr<HeldTranslator> hold_built_in_translator(CacheType cache_type) {
  if (!translator_files()) return nullptr;
  return std::make_unique<HeldTranslator>([cache_type] {
    LoadedModel translator = load_translator(std::string(embedded_translator_name));
    translator.cache_type = cache_type;
    return translator;
  });
}

ChosenTemplate chosen_template(const ServeOptions& options, const LoadedModel& model) {
  ChosenTemplate chosen = choose_chat_template(options.chat_template, model);
  if (!chosen.warning.empty() && options.warn) options.warn(chosen.warning);
  return chosen;
}

}  // namespace

ModelService::ModelService(LoadedModel model, const ServeOptions& options)
    : model_(std::move(model)) {
  router_.set_observer([this](const std::string& route, int status, double seconds) {
    metrics_.request_seconds.observe(route, status, seconds);
  });
  const Names names = served_names(options, model_.name);
  if (model_.is_translator()) {
    answer_for_pairs(options, names);
  } else if (model_.is_encoder()) {
    answer_for_vectors(options, names);
  } else {
    answer_for_texts(options, names, chosen_template(options, model_));
  }
}

void ModelService::answer_for_texts(const ServeOptions& options, const Names& names,
                                    ChosenTemplate chosen) {
  model_.name = names.front();
  scheduler_.emplace(model_, compute_, metrics_, options.scheduler);
  translator_ = hold_built_in_translator(options.scheduler.cache_type);
  context_.emplace(Context{.model = model_,
                           .options = options,
                           .name = model_.name,
                           .compute = compute_,
                           .metrics = metrics_,
                           .scheduler = *scheduler_,
                           .created = seconds_now(),
                           .aliases = {names.begin() + 1, names.end()},
                           .chat_template = std::move(chosen.chat_template),
                           .translator = translator_.get()});
  register_service(router_, *context_);
  if (options.face == Face::explorer) register_explorer(router_, *context_);
}

void ModelService::answer_for_vectors(const ServeOptions& options, const Names& names) {
  require(
      options.face == Face::service, ErrorCode::unsupported,
      "'{}' is an encoder, and the page shows models that predict a next token, and translators: "
      "`heed serve` answers with its embeddings, `heed attend` shows its attention",
      names.front());
  require(options.chat_template.empty(), ErrorCode::invalid_argument,
          "'{}' is an encoder, which answers no chats: leave out the chat template '{}'",
          names.front(), options.chat_template);
  const std::int64_t context = model_.transformer.specification().context;
  require(options.scheduler.context <= context, ErrorCode::invalid_argument,
          "a context of {} tokens is more than the model's, {}", options.scheduler.context,
          context);
  model_.name = names.front();
  translator_ = hold_built_in_translator(options.scheduler.cache_type);
  encoder_.emplace(EncoderContext{
      .encoder = model_,
      .aliases = {names.begin() + 1, names.end()},
      .compute = compute_,
      .metrics = metrics_,
      .created = seconds_now(),
      .context = options.scheduler.context > 0 ? options.scheduler.context : context,
      .pooling = model_.directory.empty() ? TokenPooling::mean : read_pooling(model_.directory),
      .translator = translator_.get()});
  register_encoder_service(router_, *encoder_);
}

void ModelService::answer_for_pairs(const ServeOptions& options, const Names& names) {
  model_.name = names.front();
  model_.cache_type = options.scheduler.cache_type;
  translation_.emplace(TranslationContext{.translator = model_,
                                          .name = model_.name,
                                          .aliases = {names.begin() + 1, names.end()},
                                          .compute = compute_,
                                          .metrics = metrics_,
                                          .created = seconds_now()});
  register_translation_service(router_, *translation_);
  if (options.face == Face::explorer) {
    register_translator_explorer(router_, compute_, model_, options.explorer.trace_budget);
  }
}

}  // namespace heed::server
