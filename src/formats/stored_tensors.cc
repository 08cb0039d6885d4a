#include "formats/stored_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/bf16.h"
#include "base/error.h"
#include "base/shared_bytes.h"
#include "kernels/elements.h"

namespace heed {
namespace {

using kernels::WeightFormat;

// (R, …) of another number of rows.
Shape with_rows(const Shape& shape, std::int64_t rows) {
  return shape.rank() == 1 ? Shape{rows} : Shape{rows, shape[1]};
}

Shape shape_in_file(const StoredTensor& stored) {
  switch (stored.storage) {
    case Storage::transposed: return {stored.shape[1], stored.shape[0]};
    case Storage::one_row: return {1, stored.shape[0]};
    default: break;
  }
  if (stored.joined_rows > 0) return with_rows(stored.shape, stored.joined_rows);
  if (stored.unused_rows == 0) return stored.shape;
  return with_rows(stored.shape, stored.unused_rows + stored.shape[0]);
}

// The rows of a parameter that a tensor holds.
template <class T>
View<T> rows_of(View<T> parameter, const StoredTensor& stored) {
  return parameter.slice(0, stored.first_row, stored.first_row + stored.shape[0]);
}

// Copies (G, H/G + 2, D, …) rows to (H + 2G, D, …), all queries, keys and values, or back: of
// numbers, or of blocks.
enum class Direction { to_memory, to_file };
template <class T>
void interleave(const AttentionSpecification& attention, Direction direction,
                std::span<const T> from, std::span<T> to) {
  const std::int64_t heads = attention.query_heads, groups = attention.key_value_heads;
  const std::int64_t queries = attention.group_size(), parts = heads + 2 * groups;
  const std::size_t block = from.size() / static_cast<std::size_t>(parts);
  check(std::ssize(from) % (parts * attention.head_size) == 0, "whole heads are interleaved");
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t part = 0; part < queries + 2; ++part) {
      const std::int64_t own =
          part < queries ? group * queries + part : heads + (part - queries) * groups + group;
      const std::size_t in_file = static_cast<std::size_t>(group * (queries + 2) + part) * block;
      const std::size_t in_memory = static_cast<std::size_t>(own) * block;
      const bool loads = direction == Direction::to_memory;
      std::ranges::copy(from.subspan(loads ? in_file : in_memory, block),
                        to.begin() + static_cast<std::ptrdiff_t>(loads ? in_memory : in_file));
    }
  }
}

// Rows i and i + D/2 of a head are 2i and 2i + 1 of the file.
template <class T>
void pair_rows(std::int64_t head_size, Direction direction, std::span<const T> from,
               std::span<T> to, std::int64_t rows) {
  const std::size_t width = from.size() / static_cast<std::size_t>(rows);
  check(head_size % 2 == 0 && rows % head_size == 0, "whole heads of pairs are stored");
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t head = row / head_size, channel = row % head_size;
    const std::int64_t paired =
        head * head_size + channel % (head_size / 2) * 2 + channel / (head_size / 2);
    const bool loads = direction == Direction::to_memory;
    std::ranges::copy(from.subspan(static_cast<std::size_t>(loads ? paired : row) * width, width),
                      to.begin() + (loads ? row : paired) * static_cast<std::ptrdiff_t>(width));
  }
}

bool moves_rows(Storage storage) {
  return storage == Storage::heads_interleaved || storage == Storage::pairs_adjacent;
}

// The rows of a parameter between memory and the order of its file.
template <class T>
void move_rows(const AttentionSpecification& attention, const StoredTensor& stored,
               Direction direction, std::span<const T> from, std::span<T> to) {
  if (stored.storage == Storage::heads_interleaved) {
    return interleave(attention, direction, from, to);
  }
  pair_rows(attention.head_size, direction, from, to, stored.shape[0]);
}

// The rows of a table whose first piece is `part`, each while it is here.
std::function<void(const ByteSink&)> in_pieces(const StackSchedule& schedule,
                                               const ParameterPart& part, View<const float> rows) {
  return [schedule, part, rows](const ByteSink& sink) {
    for (ParameterPart piece = part; piece.piece < schedule.pieces(); ++piece.piece) {
      const Reading reading(schedule, piece);
      const auto [begin, end] = schedule.rows(piece.piece);
      sink(std::as_bytes(rows.slice(0, begin, end).span()));
    }
  };
}

// bf16, in the order that `tensor` is in the file.
OutgoingTensor as_bf16(OutgoingTensor tensor) {
  tensor.dtype = DType::bf16;
  tensor.produce = [produce = std::move(tensor.produce)](const ByteSink& sink) {
    produce([&](std::span<const std::byte> bytes) {
      std::vector<std::uint16_t> rounded(bytes.size() / sizeof(float));
      for (std::size_t i = 0; i < rounded.size(); ++i) {
        float number;
        std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
        rounded[i] = f32_to_bf16(number);
      }
      sink(std::as_bytes(std::span(rounded)));
    });
  };
  return tensor;
}

}  // namespace

StoredModel::StoredModel(const Format& format, const Architecture& architecture,
                         RoundedParts rounded)
    : format_(format),
      architecture_(architecture),
      weights_(rounded.weights),
      rounds_embedding_(rounded.embedding),
      tensors_(format.tensors(architecture)),
      parameters_(parameter_layout(architecture)) {
  if (format.computed) computed_ = format.computed(architecture);
  for (const StoredTensor& stored : tensors_) {
    by_name_[without_prefix(stored.name)] = &stored;
    for (const std::string& alias : stored.aliases) by_name_[without_prefix(alias)] = &stored;
  }
}

std::string_view StoredModel::without_prefix(std::string_view name) const {
  return name.starts_with(format_.prefix) ? name.substr(format_.prefix.size()) : name;
}

const TensorEntry* StoredModel::find(const TensorSource& source, const std::string& name) const {
  const std::string bare(without_prefix(name));
  if (const TensorEntry* entry = source.find(bare)) return entry;
  return source.find(std::string(format_.prefix) + bare);
}

const TensorEntry* StoredModel::find(const TensorSource& source, const StoredTensor& stored) const {
  const TensorEntry* entry = find(source, stored.name);
  for (const std::string& alias : stored.aliases) {
    if (entry == nullptr) entry = find(source, alias);
  }
  return entry == nullptr && !stored.otherwise.empty() ? find(source, stored.otherwise) : entry;
}

StoredIntegers StoredModel::integers_of(const TensorSource& source,
                                        const StoredTensor& stored) const {
  const std::string bare(without_prefix(stored.name));
  const bool is_bare = source.find(integers_name(bare, weights_)) != nullptr;
  // Outputs first, whatever the storage of floats.
  const Shape matrix =
      stored.joined_rows > 0 ? with_rows(stored.shape, stored.joined_rows) : stored.shape;
  return find_integers(source, is_bare ? bare : std::string(format_.prefix) + bare, matrix,
                       weights_);
}

bool StoredModel::has_parameter(const StoredTensor& stored) const {
  return parameters_.find(parameter_name(stored.parameter)) != nullptr;
}

// What a tensor is written in: other than f32 are the matrices of linear layers, and embeddings
// where they are rounded, too. An unembedding tied to the token table is that table.
WeightFormat StoredModel::format_of(const StoredTensor& stored) const {
  const auto [role, part] = std::pair(stored.parameter.role, stored.parameter.part);
  if (part != Part::weight || weights_ == WeightFormat::f32) return WeightFormat::f32;
  if (is_linear(role)) return weights_;
  if (!rounds_embedding_) return WeightFormat::f32;
  if (role == Role::token_embedding) return weights_;
  return role == Role::position_embedding ? WeightFormat::bf16 : WeightFormat::f32;
}

bool StoredModel::holds_integers(const StoredTensor& stored) const {
  return is_integer(format_of(stored));
}

bool StoredModel::is_computed(std::string_view bare_name) const {
  return std::ranges::any_of(computed_, [&](const ComputedTensor& computed) {
    return without_prefix(computed.name) == bare_name;
  });
}

std::string StoredModel::layers_text() const {
  return architecture_.is_encoder_decoder()
             ? fmt::format("{} + {} layers", architecture_.encoder().layers,
                           architecture_.decoder().layers)
             : fmt::format("{} layers", architecture_.decoder().layers);
}

std::string_view StoredModel::stored_name(std::string_view name) const {
  if (!is_integer(weights_)) return name;
  for (const std::string_view ending :
       {kernels::weight_format_name(weights_), std::string_view("scales")}) {
    const std::size_t length = ending.size() + 1;
    if (name.size() <= length || !name.ends_with(ending) || name[name.size() - length] != '.') {
      continue;
    }
    const std::string_view parameter = name.substr(0, name.size() - length);
    const auto found = by_name_.find(parameter);
    if (found != by_name_.end() && holds_integers(*found->second)) return parameter;
  }
  return name;
}

// What no parameter needs: buffers, tables that heed computes, and further names of a tensor that
// the file has under another, which is listed.
bool StoredModel::may_be_unlisted(const TensorSource& source, std::string_view bare_name) const {
  const auto found = by_name_.find(bare_name);
  if (found == by_name_.end()) return is_computed(bare_name) || format_.is_buffer(bare_name);
  std::vector<std::string> names = found->second->aliases;
  names.push_back(found->second->name);
  return std::ranges::any_of(names, [&](const std::string& name) {
    const TensorEntry* const entry = find(source, name);
    return entry != nullptr && !source.is_unlisted(entry->name);
  });
}

void StoredModel::check_tensors(const TensorSource& source) const {
  for (const TensorEntry* entry : source.tensors()) {
    const std::string_view bare = without_prefix(entry->name);
    const std::string_view name = stored_name(bare);
    require(by_name_.contains(name) || is_computed(bare) || format_.is_buffer(bare),
            ErrorCode::corrupt_data, "{}: unexpected tensor '{}' for this config ({})",
            source.source(), entry->name, layers_text());
    require(!source.is_unlisted(entry->name) || may_be_unlisted(source, bare),
            ErrorCode::corrupt_data,
            "{}: contains tensor '{}', which the index does not list for this file",
            source.source(), entry->name);
  }
  for (const StoredTensor& stored : tensors_) {
    if (!has_parameter(stored)) continue;
    if (holds_integers(stored)) {
      integers_of(source, stored);
      continue;
    }
    const TensorEntry* const entry = find(source, stored);
    if (entry == nullptr && stored.may_be_absent) continue;
    const std::int64_t elements = shape_in_file(stored).size();
    require(entry != nullptr && entry->shape.size() == elements, ErrorCode::corrupt_data,
            "{}: '{}' {}, but {} requires {} elements", source.source(),
            entry == nullptr ? stored.name : entry->name,
            entry == nullptr ? "is missing" : "has shape " + entry->shape.text(),
            format_.described_by, elements);
  }
}

void StoredModel::read_rows(const TensorSource& source, const StoredTensor& stored,
                            View<float> rows) const {
  if (stored.joined_rows > 0) {
    StoredTensor joined = stored;
    joined.shape = shape_in_file(stored);
    joined.joined_rows = 0;
    Tensor<float> all(joined.shape);
    read_rows(source, joined, all);
    const std::int64_t first = stored.first_joined_row;
    return kernels::copy(all.view().slice(0, first, first + stored.shape[0]), rows);
  }
  if (holds_integers(stored)) {
    return read_integers(source, integers_of(source, stored), weights_, rows);
  }
  const TensorEntry* const entry = find(source, stored);
  if (entry == nullptr && stored.may_be_absent) return;
  const Shape in_file = shape_in_file(stored);
  require(entry != nullptr, ErrorCode::corrupt_data, "{}: tensor '{}' is missing; {} requires it",
          source.source(), stored.name, format_.described_by);
  require(entry->shape == in_file, ErrorCode::corrupt_data,
          "{}: '{}' has shape {}, but {} requires {}", source.source(), entry->name,
          entry->shape.text(), format_.described_by, in_file.text());
  if (stored.storage == Storage::transposed) return read_transposed_as_f32(*entry, rows);
  if (stored.storage == Storage::one_row) return read_as_f32(*entry, rows.reshape(in_file));
  if (stored.unused_rows == 0) return read_as_f32(*entry, rows);
  Tensor<float> all(in_file);
  read_as_f32(*entry, all);
  const View<const float> used = all.view().slice(0, stored.unused_rows, in_file[0]);
  std::ranges::copy(used.span(), rows.data());
}

void StoredModel::read_one(const TensorSource& source, const StoredTensor& stored,
                           Parameters& parameters) const {
  const View<float> rows = rows_of(parameters.tensor(stored.parameter), stored);
  if (!moves_rows(stored.storage)) {
    read_rows(source, stored, rows);
    if (stored.storage == Storage::less_one) {
      for (float& gain : rows.span()) gain += 1;
    }
    return check_aliases(source, stored, rows);
  }
  Tensor<float> in_file(stored.shape);
  read_rows(source, stored, in_file);
  move_rows(architecture_.of(stored.parameter.site).block.attention, stored, Direction::to_memory,
            std::as_const(in_file).span(), rows.span());
}

// Where blocks of the file are rows of the parameter: each of the parts in blocks, none under
// several names, of whole panels up to where types change. Else none.
std::vector<const TensorEntry*> StoredModel::block_entries(
    const TensorSource& source, std::span<const StoredTensor* const> parts) const {
  std::vector<const TensorEntry*> entries;
  std::int64_t rows = 0;
  for (const StoredTensor* const stored : parts) {
    const TensorEntry* const entry = find(source, *stored);
    const bool is_plain = stored->storage == Storage::straight || moves_rows(stored->storage);
    const bool is_usable = entry != nullptr && entry->blocks &&
                           find_weight_format(*entry->blocks) && is_plain &&
                           stored->unused_rows == 0 && stored->aliases.empty() &&
                           stored->first_row == rows && entry->shape == stored->shape;
    if (!is_usable) return {};
    const bool changes = !entries.empty() && entries.back()->blocks != entry->blocks;
    if (changes && rows % kernels::PreparedWeight::panel_outputs != 0) return {};
    entries.push_back(entry);
    rows += stored->shape[0];
  }
  return entries;
}

kernels::PreparedWeight StoredModel::prepared_blocks(
    kernels::WeightMemory& memory, const TensorSource& source,
    std::span<const StoredTensor* const> parts, std::span<const TensorEntry* const> entries) const {
  std::deque<FilePart> read;
  std::deque<std::vector<std::byte>> moved;
  std::vector<kernels::BlockMatrix> matrices;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const StoredTensor& stored = *parts[i];
    const TensorEntry* const entry = entries[i];
    const std::span<const std::byte> bytes = read.emplace_back(bytes_of(*entry)).bytes();
    const auto release = [&source, entry](std::span<const std::byte> copied) {
      source.release_pages(*entry, copied);
    };
    kernels::BlockMatrix& matrix = matrices.emplace_back();
    matrix = {.blocks = bytes,
              .shape = entry->shape,
              .format = *find_weight_format(*entry->blocks),
              .copied = release};
    if (!moves_rows(stored.storage) || memory.is_written()) continue;
    std::vector<std::byte>& rows = moved.emplace_back(bytes.size());
    move_rows<std::byte>(architecture_.of(stored.parameter.site).block.attention, stored,
                         Direction::to_memory, bytes, rows);
    matrix.blocks = rows;
    matrix.copied = {};
    release(bytes);
  }
  try {
    return kernels::PreparedWeight(matrices, &memory);
  } catch (const Error& error) {
    fail(error.code() == ErrorCode::out_of_memory ? error.code() : ErrorCode::corrupt_data,
         "{}: '{}': {}", source.source(), entries.front()->name, error.what());
  }
}

BlockWeights StoredModel::blocks_of(const std::shared_ptr<const TensorSource>& source) const {
  struct Found {
    ParameterId id;
    std::vector<const StoredTensor*> parts;
    std::vector<const TensorEntry*> entries;
  };
  std::vector<Found> all;
  std::int64_t bytes = 0;  // of what is multiplied
  std::string contents = fmt::format("layout {} ", kernels::WeightMemory::layout);
  for (const Parameter& parameter : parameters_of(architecture_)) {
    const ParameterId& id = parameter.id;
    const bool is_table = id.role == Role::token_embedding;
    if (id.part != Part::weight || (!is_linear(id.role) && !is_table)) continue;
    std::vector<const StoredTensor*> parts;
    for (const StoredTensor& stored : tensors_) {
      if (stored.parameter == id) parts.push_back(&stored);
    }
    std::vector<const TensorEntry*> entries = block_entries(*source, parts);
    if (entries.empty()) continue;
    if (is_multiplied(architecture_, id)) {
      for (const TensorEntry* const entry : entries) {
        bytes +=
            kernels::PreparedWeight::bytes_of(entry->shape, *find_weight_format(*entry->blocks));
      }
      contents += parameter_name(id) + ' ';
    }
    all.push_back({id, std::move(parts), std::move(entries)});
  }
  BlockWeights blocks;
  const std::shared_ptr<SharedBytes> shared = source->shared_memory(contents, bytes);
  kernels::WeightMemory memory =
      shared == nullptr ? kernels::WeightMemory(bytes) : kernels::WeightMemory(shared);
  for (const auto& [id, parts, entries] : all) {
    if (is_multiplied(architecture_, id)) {
      blocks.add(id, prepared_blocks(memory, *source, parts, entries));
      continue;
    }
    check(id.role == Role::token_embedding && entries.size() == 1, "a table is one tensor");
    const TensorEntry& entry = *entries.front();
    struct ReadPart {
      std::shared_ptr<const TensorSource> source;
      FilePart part;
    };
    const auto read = std::make_shared<const ReadPart>(ReadPart{source, bytes_of(entry)});
    blocks.add(
        id, BlockTable({.type = *entry.blocks, .shape = entry.shape, .bytes = read->part.bytes()},
                       read));
  }
  if (shared != nullptr && !shared->is_sealed()) shared->seal();
  return blocks;
}

// A parameter that the config excludes must be absent from the file, or zero.
void StoredModel::check_zero(const TensorSource& source, const StoredTensor& stored) const {
  const TensorEntry* const entry = find(source, stored.name);
  if (entry == nullptr) return;
  Tensor<float> values(entry->shape);
  read_as_f32(*entry, values);
  require(std::ranges::all_of(values.span(), [](float value) { return value == 0.0F; }),
          ErrorCode::corrupt_data,
          "{}: '{}' is not zero although config.json says the model has no biases", source.source(),
          entry->name);
}

// A file of a tied model may repeat the embedding, as the unembedding or that of another stack;
// another matrix is a contradiction.
void StoredModel::check_aliases(const TensorSource& source, const StoredTensor& stored,
                                View<const float> rows) const {
  if (stored.aliases.empty()) return;
  const TensorEntry* const read = find(source, stored);
  for (const std::string& alias : stored.aliases) {
    const TensorEntry* const entry = find(source, alias);
    if (entry == nullptr || entry == read) continue;
    require(entry->shape == rows.shape(), ErrorCode::corrupt_data,
            "{}: '{}' has shape {}, but config.json requires {}", source.source(), entry->name,
            entry->shape.text(), rows.shape().text());
    Tensor<float> values(rows.shape());
    read_as_f32(*entry, values);
    require(std::ranges::equal(values.span(), rows.span()), ErrorCode::corrupt_data,
            "{}: '{}' differs from {} although config.json ties them (tie_word_embeddings)",
            source.source(), entry->name, read != nullptr ? read->name : stored.name);
  }
}

void StoredModel::check_computed(const TensorSource& source) const {
  for (const ComputedTensor& computed : computed_) {
    const TensorEntry* const entry = find(source, computed.name);
    if (entry == nullptr) continue;
    const Tensor<float> expected = computed.values();
    require(entry->shape == expected.shape(), ErrorCode::corrupt_data,
            "{}: '{}' has shape {}, but config.json requires {}", source.source(), entry->name,
            entry->shape.text(), expected.shape().text());
    Tensor<float> values(expected.shape());
    read_as_f32(*entry, values);
    // Sines and cosines, in the precision of their type: half of the last of 8, 11 or 24 bits.
    const float tolerance = entry->dtype == DType::bf16  ? 0x1p-8F
                            : entry->dtype == DType::f16 ? 0x1p-11F
                                                         : 1e-6F;
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      const float difference = std::abs(values[i] - expected[i]);
      // Not a number differs.
      require(difference <= tolerance, ErrorCode::unsupported,
              "{}: element {} of '{}' is {}, but heed computes {}", source.source(), i, entry->name,
              values[i], expected[i]);
    }
  }
}

void StoredModel::read(const TensorSource& source, Parameters& parameters) const {
  for (const StoredTensor& stored : tensors_) {
    if (has_parameter(stored)) {
      if (!parameters.is_in_blocks(stored.parameter)) read_one(source, stored, parameters);
    } else {
      check_zero(source, stored);
    }
  }
  check_computed(source);
}

// A parameter's rows in the order, and with the unused ones, of the file.
Tensor<float> StoredModel::in_file(const StoredTensor& stored, View<const float> rows) const {
  Tensor<float> values(shape_in_file(stored));
  const View<float> used = stored.unused_rows > 0
                               ? values.view().slice(0, stored.unused_rows, values.shape()[0])
                               : values.view();
  if (moves_rows(stored.storage)) {
    move_rows(architecture_.of(stored.parameter.site).block.attention, stored, Direction::to_file,
              rows.span(), used.span());
  } else {
    std::ranges::copy(rows.span(), used.data());
  }
  if (stored.storage == Storage::less_one) {
    for (float& gain : used.span()) gain -= 1;
  }
  return values;
}

void StoredModel::require_finite(const Parameters& parameters) const {
  if (weights_ == WeightFormat::f32) return;
  for (const StoredTensor& stored : tensors_) {
    const WeightFormat format =
        is_multiplied(architecture_, stored.parameter) ? weights_ : format_of(stored);
    if (format == WeightFormat::f32 || !has_parameter(stored)) continue;
    const std::optional<float> beyond = kernels::find_not_finite(
        rows_of(parameters.tensor(stored.parameter), stored).span(), format);
    require(!beyond, ErrorCode::unsupported,
            "'{}' holds the weight {}, which is not finite in {}: convert to f32", stored.name,
            beyond.value_or(0), kernels::weight_format_name(format));
  }
}

std::vector<OutgoingTensor> StoredModel::outgoing(const Parameters& parameters,
                                                  std::deque<Tensor<float>>& room) const {
  std::vector<OutgoingTensor> tensors;
  for (const StoredTensor& stored : tensors_) {
    if (!has_parameter(stored)) {
      room.emplace_back(stored.shape);
      tensors.push_back(heed::outgoing<float>(stored.name, room.back()));
      continue;
    }
    const std::size_t first = tensors.size();
    append(stored, parameters, room, tensors);
    const StackSchedule& schedule = parameters.schedule_of(stored.parameter);
    const ParameterPart part = part_of(stored.parameter, architecture_, schedule.piece_rows);
    if (part.piece >= 0) continue;  // read piece by piece: append()
    for (std::size_t i = first; i < tensors.size(); ++i) {
      tensors[i].produce = [schedule, part,
                            produce = std::move(tensors[i].produce)](const ByteSink& sink) {
        const Reading reading(schedule, part);
        produce(sink);
      };
    }
  }
  return tensors;
}

// The tensor of several parameters, with the first of them.
void StoredModel::append_joined(const StoredTensor& stored, const Parameters& parameters,
                                std::deque<Tensor<float>>& room,
                                std::vector<OutgoingTensor>& tensors) const {
  if (stored.first_joined_row > 0) return;
  std::vector<View<const float>> parts;
  for (const StoredTensor& part : tensors_) {
    if (part.name == stored.name) parts.push_back(rows_of(parameters.tensor(part.parameter), part));
  }
  const Shape shape = shape_in_file(stored);
  const auto produce = [parts = std::move(parts)](const ByteSink& sink) {
    for (const View<const float>& part : parts) sink(std::as_bytes(part.span()));
  };
  if (holds_integers(stored)) {
    Tensor<float>& all = room.emplace_back(shape);
    std::byte* to = std::as_writable_bytes(all.span()).data();
    produce([&](std::span<const std::byte> bytes) { to = std::ranges::copy(bytes, to).out; });
    return append_integers(tensors, stored.name, all, weights_);
  }
  OutgoingTensor tensor{
      .name = stored.name, .dtype = DType::f32, .shape = shape, .produce = produce};
  const bool rounds = format_of(stored) == WeightFormat::bf16;
  tensors.push_back(rounds ? as_bf16(std::move(tensor)) : std::move(tensor));
}

void StoredModel::append(const StoredTensor& stored, const Parameters& parameters,
                         std::deque<Tensor<float>>& room,
                         std::vector<OutgoingTensor>& tensors) const {
  if (stored.joined_rows > 0) return append_joined(stored, parameters, room, tensors);
  View<const float> rows = rows_of(parameters.tensor(stored.parameter), stored);
  const bool is_copied =
      moves_rows(stored.storage) || stored.unused_rows > 0 || stored.storage == Storage::less_one;
  if (holds_integers(stored)) {
    if (is_copied) rows = room.emplace_back(in_file(stored, rows));
    return append_integers(tensors, stored.name, rows, weights_);
  }
  OutgoingTensor tensor;
  if (is_copied) {
    tensor = {.name = stored.name,
              .dtype = DType::f32,
              .shape = shape_in_file(stored),
              .produce = [this, &stored, rows](const ByteSink& sink) {
                const Tensor<float> values = in_file(stored, rows);
                sink(std::as_bytes(values.span()));
              }};
  } else if (stored.storage == Storage::transposed) {
    tensor = outgoing_transposed(stored.name, rows);
  } else {
    if (stored.storage == Storage::one_row) rows = rows.reshape(shape_in_file(stored));
    tensor = heed::outgoing(stored.name, rows);
  }
  const StackSchedule& schedule = parameters.schedule_of(stored.parameter);
  const ParameterPart part = part_of(stored.parameter, architecture_, schedule.piece_rows);
  if (part.piece >= 0) {
    check(stored.storage == Storage::straight && !is_copied, "tables are stored as they are");
    tensor.produce = in_pieces(schedule, part, rows);
  }
  const bool rounds = format_of(stored) == WeightFormat::bf16;
  tensors.push_back(rounds ? as_bf16(std::move(tensor)) : std::move(tensor));
}

}  // namespace heed
