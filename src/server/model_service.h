// A loaded model, its scheduler and the router of its requests: of a server (serve.h), or of a page
// where heed runs in a browser.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/loaded_translator.h"
#include "server/context.h"
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
  ModelService(LoadedModel&& model, const ServeOptions& options, ChosenTemplate chosen,
               const std::vector<std::string>& names);

  LoadedModel model_;
  Compute compute_;
  Metrics metrics_;
  Scheduler scheduler_;
  std::unique_ptr<HeldTranslator> translator_;  // the one that heed carries; null: none
  Context context_;
  Router router_;
};

class TranslatorService {
 public:
  TranslatorService(LoadedTranslator translator, const ServeOptions& options);
  TranslatorService(const TranslatorService&) = delete;
  TranslatorService& operator=(const TranslatorService&) = delete;

  const Router& router() const { return router_; }
  Compute& compute() { return compute_; }

 private:
  TranslatorService(LoadedTranslator&& translator, const ServeOptions& options,
                    const std::vector<std::string>& names);

  LoadedTranslator translator_;
  Metrics metrics_;
  Compute compute_;
  TranslationContext context_;
  Router router_;
};

}  // namespace heed::server
