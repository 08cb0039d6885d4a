// A model's weights, as the matrices W of x·W, rows being inputs and columns outputs.
#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string_view>

#include <fmt/ranges.h>

#include "base/error.h"
#include "model/input_checks.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

constexpr std::int64_t max_numbers = std::int64_t{1} << 22;

// Numbers by row and column.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // Of a column, the numbers of these rows.
  std::function<std::vector<float>(std::int64_t, std::span<const std::int64_t>)> column;
};

// Inputs [input, input + rows) and outputs [output, output + columns) of a linear layer, as it
// multiplies: dequantised where it is quantised.
Matrix part_of(const LinearWeights& linear, std::int64_t input, std::int64_t rows,
               std::int64_t output, std::int64_t columns) {
  return {rows, columns,
          [&linear, input, output](std::int64_t column, std::span<const std::int64_t> chosen) {
            const std::vector<float> all = kernels::multiplied_row(linear, output + column);
            std::vector<float> values;
            for (const std::int64_t row : chosen) {
              values.push_back(all[static_cast<std::size_t>(input + row)]);
            }
            return values;
          }};
}

Matrix embedding(View<const float> rows) {
  return {rows.extent(0), rows.extent(1),
          [rows](std::int64_t column, std::span<const std::int64_t> chosen) {
            std::vector<float> values;
            for (const std::int64_t row : chosen) values.push_back(rows(row, column));
            return values;
          }};
}

// ?rows= or ?columns= as indices below `count`; all of them by default.
std::vector<std::int64_t> chosen(const Request& request, const std::string& name,
                                 std::int64_t count) {
  std::vector<std::int64_t> indices = index_list(request, name);
  if (!indices.empty()) {
    for (const std::int64_t index : indices) {
      require(index >= 0 && index < count, ErrorCode::invalid_argument,
              "{}: {} does not exist: the matrix has 0 to {}", name, index, count - 1);
    }
    return indices;
  }
  require(count <= max_numbers, ErrorCode::invalid_argument, "choose some of {} {}", count, name);
  for (std::int64_t index = 0; index < count; ++index) indices.push_back(index);
  return indices;
}

Reply matrix_reply(const Request& request, const Matrix& matrix, const std::string& name) {
  const std::vector<std::int64_t> rows = chosen(request, "rows", matrix.rows);
  const std::vector<std::int64_t> columns = chosen(request, "columns", matrix.columns);
  require(std::ssize(rows) * std::ssize(columns) <= max_numbers, ErrorCode::invalid_argument,
          "{} x {} numbers are more than the {} of one answer: choose rows and columns",
          rows.size(), columns.size(), max_numbers);
  Tensor<float> numbers(Shape{std::ssize(rows), std::ssize(columns)});
  for (std::int64_t c = 0; c < std::ssize(columns); ++c) {
    require(!stop_requested(request.stop), ErrorCode::interrupted, "the client disconnected");
    const std::vector<float> column = matrix.column(columns[static_cast<std::size_t>(c)], rows);
    for (std::int64_t r = 0; r < std::ssize(rows); ++r) {
      numbers.view()(r, c) = column[static_cast<std::size_t>(r)];
    }
  }
  return array_reply(request, numbers, name);
}

constexpr std::array<std::string_view, 7> roles = {
    "attention.query", "attention.key",     "attention.value",  "attention.output",
    "feed_forward.up", "feed_forward.down", "feed_forward.gate"};

// The matrix of a head, which `head` names among query heads, or among key/value heads.
Matrix matrix_of_role(const Request& request, const StackSpecification& config,
                      const BlockParameters& block, std::size_t role) {
  const std::int64_t channels = config.channels, size = config.head_size();
  const AttentionSpecification& attention = config.block.attention;
  const std::int64_t width = attention.query_width();
  const bool is_of_head = request.parameter("head").has_value();
  const bool is_shared = role == 1 || role == 2;
  const std::int64_t heads = is_shared ? attention.key_value_heads : attention.query_heads;
  require(!is_of_head || role <= 3, ErrorCode::invalid_argument, "{} has no heads", roles[role]);
  require(is_of_head || role >= 3, ErrorCode::invalid_argument,
          "{} is a matrix of one head: choose it with head=0 to {}", roles[role], heads - 1);
  const std::int64_t head = is_of_head ? request.integer("head", 0) : 0;
  require(head >= 0 && head < heads, ErrorCode::invalid_argument,
          "head {} does not exist: {} has heads 0 to {}", head, roles[role], heads - 1);
  const std::int64_t first = head * size, k = attention.key_value_width();
  switch (role) {
    case 0: return part_of(block.query_key_value, 0, channels, first, size);
    case 1: return part_of(block.query_key_value, 0, channels, width + first, size);
    case 2: return part_of(block.query_key_value, 0, channels, width + k + first, size);
    case 3: return part_of(block.projection, first, is_of_head ? size : width, 0, channels);
    case 4: return part_of(block.up, 0, channels, 0, config.feed_forward());
    case 5: return part_of(block.down, 0, config.feed_forward(), 0, channels);
    default: break;
  }
  require(config.block.feed_forward.gated, ErrorCode::not_found,
          "the feed-forward layers of this model have no gate");
  return part_of(block.gate, 0, channels, 0, config.feed_forward());
}

Reply layer_weights(State& state, const Request& request) {
  const ChosenModel chosen_model = state.model_of(request);
  const Transformer& transformer = chosen_model.model->transformer;
  const std::int64_t layer =
      checked_layer(request.integer_in_path("layer"), transformer.specification());
  const std::string& name = request.in_path("role");
  const auto role = std::ranges::find(roles, name);
  require(role != roles.end(), ErrorCode::not_found, "there are no weights '{}'; there are {}",
          name.substr(0, 40), fmt::join(roles, ", "));
  return matrix_reply(
      request,
      matrix_of_role(request, transformer.specification(), transformer.parameters().block(layer),
                     static_cast<std::size_t>(role - roles.begin())),
      name);
}

Reply token_embedding(State& state, const Request& request) {
  const ChosenModel chosen_model = state.model_of(request);
  return matrix_reply(request,
                      embedding(chosen_model.model->transformer.parameters().token_embedding()),
                      "token-embedding");
}

Reply position_embedding(State& state, const Request& request) {
  const ChosenModel chosen_model = state.model_of(request);
  const Transformer& transformer = chosen_model.model->transformer;
  require(transformer.specification().has_position_table(), ErrorCode::not_found,
          "this model has no table of positions");
  return matrix_reply(request, embedding(transformer.parameters().position_embedding()),
                      "position-embedding");
}

}  // namespace

void add_weight_routes(StateRoutes& routes) {
  routes.add("GET", "/api/weights/token_embedding", token_embedding);
  routes.add("GET", "/api/weights/position_embedding", position_embedding);
  routes.add("GET", "/api/weights/{layer}/{role}", layer_weights);
}

}  // namespace heed::server
