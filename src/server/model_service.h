// A loaded model and the router of its requests: of a server (serve.h), or of a page where heed
// runs in a browser.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "server/context.h"
#include "server/encoder_service.h"
#include "server/router.h"

namespace heed::server {

class ModelService {
 public:
  // The options are borrowed. Throws what choose_chat_template throws.
  ModelService(LoadedModel model, const ServeOptions& options);
  ModelService(const ModelService&) = delete;
  ModelService& operator=(const ModelService&) = delete;

  const Router& router() const { return router_; }
  Compute& compute() { return compute_; }

 private:
  using Names = std::vector<std::string>;  // the first is in replies
  void answer_for_texts(const ServeOptions& options, const Names& names, ChosenTemplate chosen);
  void answer_for_vectors(const ServeOptions& options, const Names& names);
  void answer_for_pairs(const ServeOptions& options, const Names& names);

  LoadedModel model_;
  Compute compute_;
  Metrics metrics_;
  std::unique_ptr<HeldTranslator> translator_;  // the one that heed carries; null: none
  // Of a model that continues texts.
  std::optional<Scheduler> scheduler_;
  std::optional<Context> context_;
  std::optional<EncoderContext> encoder_;          // of an encoder alone
  std::optional<TranslationContext> translation_;  // of a translator
  Router router_;
};

}  // namespace heed::server
