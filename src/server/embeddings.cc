#include "server/embeddings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/here.h"
#include "server/fields.h"

namespace heed::server {
namespace {

// The names of requests.
struct PoolingName {
  TokenPooling pooling;
  std::string_view name;
};
constexpr PoolingName pooling_names[] = {
    {TokenPooling::mean, "mean"}, {TokenPooling::first, "cls"}, {TokenPooling::last, "last"}};

TokenPooling requested_pooling(const Fields& fields, const EmbeddingService& service) {
  const auto name = fields.string("pooling");
  if (!name) return service.pooling;
  const auto* const found = std::ranges::find(pooling_names, *name, &PoolingName::name);
  require_field(found != std::end(pooling_names), "pooling", field_code::invalid_value,
                "pooling must be \"mean\", \"cls\" or \"last\", not \"{}\"", name->substr(0, 40));
  require_field(
      found->pooling != TokenPooling::first || service.model.is_encoder(), "pooling",
      field_code::invalid_value,
      "pooling \"cls\" needs an encoder: in a model that continues texts, the first token "
      "sees no other");
  return found->pooling;
}

// The mean of the pooled rows of a text's last states, with length 1.
std::vector<float> embedding(const Transformer& transformer,
                             const std::vector<std::int32_t>& tokens, TokenPooling pooling) {
  const std::int64_t count = std::ssize(tokens);
  const StackActivations activations(transformer.specification(), 1, count, Keep::one_block, 0,
                                     transformer.device());
  transformer.forward(View<const std::int32_t>(tokens.data(), {1, count}),
                      {.sequences = {1, count}}, activations);
  const Here here(activations.final_norm());
  const View<const float> states = here.values();  // (T, C)
  const std::int64_t begin = pooling == TokenPooling::last ? count - 1 : 0;
  const std::int64_t end = pooling == TokenPooling::first ? 1 : count;
  std::vector<double> sum(static_cast<std::size_t>(states.extent(1)));
  for (std::int64_t t = begin; t < end; ++t) {
    const std::span<const float> row = states[t].span();
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += row[c];
  }
  double squares = 0;
  for (const double value : sum) squares += value * value;
  const double length = squares > 0 ? std::sqrt(squares) : 1;
  std::vector<float> result;
  for (const double value : sum) result.push_back(static_cast<float>(value / length));
  return result;
}

std::string base64(std::span<const unsigned char> bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

static_assert(std::endian::native == std::endian::little, "numbers are sent as they are stored");

OrderedJson encoded(const std::vector<float>& values, const std::string& format) {
  if (format == "base64") {
    std::vector<unsigned char> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return base64(bytes);
  }
  OrderedJson list = OrderedJson::array();
  for (const float value : values) list.push_back(json_number(value));
  return list;
}

Reply embed(const Request& request, const EmbeddingService& service) {
  const RequestCount counted(service.metrics);
  const Json body = request.json();
  const Fields fields(body);
  fields.string("model");  // any name: there is one model
  const std::string format = fields.string("encoding_format").value_or("float");
  require_field(
      format == "float" || format == "base64", "encoding_format", field_code::invalid_value,
      "encoding_format must be \"float\" or \"base64\", not \"{}\"", format.substr(0, 40));
  const std::int64_t channels = service.model.transformer.specification().channels;
  require_field(fields.integer("dimensions", 1, INT32_MAX).value_or(channels) == channels,
                "dimensions", field_code::unsupported,
                "this model's embeddings have {} dimensions, no other number", channels);
  const TokenPooling pooling = requested_pooling(fields, service);
  require_field(fields.has("input"), "input", field_code::missing, "the request has no \"input\"");
  const auto inputs = read_prompts(fields.find("input"), service.model, service.limits, "input");

  OrderedJson data = OrderedJson::array();
  std::int64_t tokens = 0;
  for (const auto& input : inputs) {
    const auto values = service.compute.run(
        request.stop, [&] { return embedding(service.model.transformer, input, pooling); });
    service.metrics.prompt_tokens += std::ssize(input);
    tokens += std::ssize(input);
    data.push_back(
        {{"object", "embedding"}, {"index", data.size()}, {"embedding", encoded(values, format)}});
  }
  Reply reply = json_reply({{"object", "list"},
                            {"data", std::move(data)},
                            {"model", service.model.name},
                            {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
  warn_of_ignored(fields, reply);
  return reply;
}

}  // namespace

void register_embeddings(Router& router, EmbeddingService service) {
  router.add("POST", "/v1/embeddings",
             [service](const Request& request) { return embed(request, service); });
}

}  // namespace heed::server
