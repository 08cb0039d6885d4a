#include "wasm/heed.h"

#include <emscripten/em_js.h>
#include <emscripten/emscripten.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "base/threads.h"
#include "engine/convert.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/measured_examples.h"
#include "kernels/quantised_cache.h"
#include "server/model_service.h"
#include "wasm/replies.h"

// clang-format off
EM_JS(void, heed_page_head, (unsigned id, int status, const char* headers, int length), {
  Module.heedHead(id, status, UTF8ToString(headers >>> 0, length));
})
EM_JS(int, heed_page_chunk, (unsigned id, const char* bytes, int length), {
  const begin = bytes >>> 0;
  return Module.heedChunk(id, HEAPU8.subarray(begin, begin + length)) === false ? 0 : 1;
})
EM_JS(void, heed_page_end, (unsigned id, const char* error, int length), {
  Module.heedEnd(id, UTF8ToString(error >>> 0, length));
})
// clang-format on

namespace heed::wasm {
namespace {

// Of a module that has 4 GB in all.
constexpr std::int64_t trace_budget = std::int64_t{768} << 20;
constexpr std::int64_t model_budget = std::int64_t{2} << 30;

server::ServeOptions serve_options(const Json& given) {
  server::ServeOptions options{.face = server::Face::explorer};
  options.scheduler.parallel = 4;
  options.scheduler.waiting = 64;
  options.explorer.trace_budget = trace_budget;
  options.explorer.model_budget = model_budget;
  options.explorer.live_runs = "/runs";
  options.explorer.recorded_run = unpack_recorded_run({});
  options.explorer.why_no_downloads = "the page downloads models by itself";
  if (const std::string name = given.value("name", ""); !name.empty()) options.aliases = {name};
  return options;
}

void send_head(std::uint32_t id, const server::Reply& reply) {
  OrderedJson headers = OrderedJson::array();
  for (const auto& [name, value] : reply.headers) headers.push_back({name, value});
  headers.push_back({"Content-Type", reply.content_type});
  const std::string text = headers.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  heed_page_head(id, reply.status, text.data(), static_cast<int>(text.size()));
}

bool send_chunk(std::uint32_t id, std::string_view bytes) {
  return heed_page_chunk(id, bytes.data(), static_cast<int>(bytes.size())) != 0;
}

void send_end(std::uint32_t id, const std::string& error) {
  heed_page_end(id, error.data(), static_cast<int>(error.size()));
}

// What is open: a model with its routes, and the replies that go on.
class Opened {
 public:
  Opened(const std::string& model, const Json& given)
      : options_(serve_options(given)),
        replies_({.head = send_head, .chunk = send_chunk, .end = send_end}) {
    set_thread_count(given.value("threads", 1));
    const WeightType wanted = parse_weight_type(given.value("dtype", ""));
    LoadedModel loaded = is_translator(model) ? load_translator(model) : load_model(model);
    // What a file holds in fewer bits stays so.
    Parameters& parameters = loaded.transformer.parameters();
    if (parameters.prepared_format() == kernels::WeightFormat::f32) {
      prepare_weights(parameters, wanted, model);
    }
    service_ = std::make_unique<server::ModelService>(std::move(loaded), options_);
  }

  void request(std::uint32_t id, const std::string& method, std::string_view target,
               std::string_view headers, std::string body) {
    const auto stop = replies_.begin(id);
    replies_.answer(id, answer(method, target, headers, std::move(body), stop.get()));
    stops_.push_back(stop);  // requests keep a pointer to it
    std::erase_if(stops_, [](const auto& each) { return each->load() && each.use_count() == 1; });
  }

  void stop(std::uint32_t id) { replies_.stop(id); }

  int work() {
    is_turn_of_jobs_ = !is_turn_of_jobs_;
    const bool has_worked = is_turn_of_jobs_ ? compute().work_once() || replies_.step()
                                             : replies_.step() || compute().work_once();
    static_cast<void>(has_worked);
    if (compute().waiting() > 0) return 0;
    const auto next = replies_.next_turn();
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Replies::Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

 private:
  server::Reply answer(const std::string& method, std::string_view target, std::string_view headers,
                       std::string body, StopFlag stop) const {
    try {
      server::Request request = server::parse_request(method, target);
      if (!headers.empty()) {
        for (const auto& [name, value] : parse_json(headers, "the headers").items()) {
          request.headers.emplace(ascii_lower(name), value.get<std::string>());
        }
      }
      request.body = std::move(body);
      request.stop = stop;
      return router().handle(std::move(request));
    } catch (...) {
      return server::reply_to_exception();
    }
  }

  const server::Router& router() const { return service_->router(); }
  server::Compute& compute() { return service_->compute(); }

  const server::ServeOptions options_;
  std::vector<std::shared_ptr<std::atomic<bool>>> stops_;
  std::unique_ptr<server::ModelService> service_;
  Replies replies_;
  bool is_turn_of_jobs_ = false;
};

std::unique_ptr<Opened> opened;
std::string failure;

// Runs what may fail for a reason that heed_error() gives: 0, or 1.
template <class Body>
int succeeds(Body&& body) {
  try {
    ::setenv("HEED_CACHE", "/", 1);  // /models
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    failure = "there is not enough memory for this model";
  } catch (const std::exception& error) {
    failure = error.what();
  }
  return 1;
}

Json parse_options(std::string_view given) {
  return given.empty() ? Json::object() : parse_json(given, "the options");
}

void convert(const std::string& model, const std::string& out, const Json& given) {
  SavedAs as = kernels::parse_weight_format(given.value("dtype", ""));
  if (given.value("embedding", false)) as.embedding = SavedAs::Embedding::rounded;
  if (given.value("compute_f32", false)) as.arithmetic = SavedAs::Arithmetic::f32;
  convert_model(model, out, as);
  if (!given.contains("claims")) return;
  const OrderedJson examples = measure_examples(load_model(out), given["claims"]);
  write_text_file(std::filesystem::path(out) / "examples.json", examples.dump(1) + "\n");
}

int threads_at_once() {
  const int threads = thread_count();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  run_in_threads(threads, [&](int) {
    const int now = ++inside;
    for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
    while (most < threads && std::chrono::steady_clock::now() < end) {
    }
    --inside;
  });
  return most;
}

}  // namespace
}  // namespace heed::wasm

using heed::wasm::opened;

extern "C" {

EMSCRIPTEN_KEEPALIVE int heed_open(const char* model, std::size_t model_length, const char* options,
                                   std::size_t options_length) {
  return heed::wasm::succeeds([&] {
    opened = std::make_unique<heed::wasm::Opened>(
        std::string(model, model_length), heed::wasm::parse_options({options, options_length}));
  });
}

EMSCRIPTEN_KEEPALIVE int heed_convert(const char* model, std::size_t model_length, const char* out,
                                      std::size_t out_length, const char* options,
                                      std::size_t options_length) {
  return heed::wasm::succeeds([&] {
    heed::wasm::convert({model, model_length}, {out, out_length},
                        heed::wasm::parse_options({options, options_length}));
  });
}

EMSCRIPTEN_KEEPALIVE const char* heed_error() { return heed::wasm::failure.c_str(); }

EMSCRIPTEN_KEEPALIVE void heed_request(std::uint32_t id, const char* method,
                                       std::size_t method_length, const char* target,
                                       std::size_t target_length, const char* headers_json,
                                       std::size_t headers_length, const char* body,
                                       std::size_t body_length) {
  if (opened == nullptr) {
    heed::wasm::send_head(id, heed::server::error_reply(503, "no model is open"));
    return heed::wasm::send_end(id, "");
  }
  opened->request(id, std::string(method, method_length), {target, target_length},
                  {headers_json, headers_length}, std::string(body, body_length));
}

EMSCRIPTEN_KEEPALIVE void heed_stop(std::uint32_t id) {
  if (opened != nullptr) opened->stop(id);
}

EMSCRIPTEN_KEEPALIVE int heed_work() { return opened == nullptr ? -1 : opened->work(); }

EMSCRIPTEN_KEEPALIVE int heed_threads() { return heed::wasm::threads_at_once(); }

}  // extern "C"
