// Moves parameters between memory and the tensors of a checkpoint, as a format's table lays them
// out.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"
#include "formats/format.h"
#include "formats/integer_weights.h"
#include "kernels/prepared_weight.h"
#include "model/parameters.h"

namespace heed {

// How a file rounds a model: the matrices of its linear layers and, where it says so, its token
// embedding, which is never multiplied in that format, and its position embedding, to bf16. Those
// are read from single numbers of any type.
struct RoundedParts {
  kernels::WeightFormat weights = kernels::WeightFormat::f32;
  bool embedding = false;
};

// The table of a model's format, and how its matrices are quantised in files.
class StoredModel {
 public:
  StoredModel(const Format& format, const Architecture& architecture, RoundedParts rounded);

  // Throws Error{corrupt_data} where a tensor is missing, unexpected, or of another shape; before
  // memory is allocated.
  void check_tensors(const TensorSource& source) const;
  // The matrices that the file holds in blocks and that can be used so: of linear layers, whose
  // parts follow each other in whole panels where their types change, and token embeddings. The
  // pages of the file that were copied are released.
  BlockWeights blocks_of(const std::shared_ptr<const TensorSource>& source) const;
  // Fills all parameters that are not in blocks; tensors for which the model has no parameter must
  // be absent or zero, those under several names equal, and those that heed computes what it
  // computes.
  void read(const TensorSource& source, Parameters& parameters) const;

  // Throws Error{unsupported} naming a tensor with a weight that is not finite, or would not
  // be in the model's format: in a file, it could not be read again.
  void require_finite(const Parameters& parameters) const;

  // The tensors of a file. They borrow this, the parameters, which are read as each is written, and
  // `room`.
  std::vector<OutgoingTensor> outgoing(const Parameters& parameters,
                                       std::deque<Tensor<float>>& room) const;

 private:
  std::string_view without_prefix(std::string_view name) const;
  const TensorEntry* find(const TensorSource& source, const std::string& name) const;
  // Under the first of its names that the file has.
  const TensorEntry* find(const TensorSource& source, const StoredTensor& stored) const;
  StoredIntegers integers_of(const TensorSource& source, const StoredTensor& stored) const;
  kernels::WeightFormat format_of(const StoredTensor& stored) const;
  bool holds_integers(const StoredTensor& stored) const;
  bool has_parameter(const StoredTensor& stored) const;
  bool is_computed(std::string_view bare_name) const;
  bool may_be_unlisted(const TensorSource& source, std::string_view bare_name) const;
  std::string layers_text() const;
  // The name of the parameter that a tensor stores, alone or with a second tensor of scales.
  std::string_view stored_name(std::string_view name) const;
  std::vector<const TensorEntry*> block_entries(const TensorSource& source,
                                                std::span<const StoredTensor* const> parts) const;
  kernels::PreparedWeight prepared_blocks(kernels::WeightMemory& memory, const TensorSource& source,
                                          std::span<const StoredTensor* const> parts,
                                          std::span<const TensorEntry* const> entries) const;
  void read_one(const TensorSource& source, const StoredTensor& stored,
                Parameters& parameters) const;
  void read_rows(const TensorSource& source, const StoredTensor& stored, View<float> rows) const;
  Tensor<float> in_file(const StoredTensor& stored, View<const float> rows) const;
  void append_joined(const StoredTensor& stored, const Parameters& parameters,
                     std::deque<Tensor<float>>& room, std::vector<OutgoingTensor>& tensors) const;
  void append(const StoredTensor& stored, const Parameters& parameters,
              std::deque<Tensor<float>>& room, std::vector<OutgoingTensor>& tensors) const;
  void check_zero(const TensorSource& source, const StoredTensor& stored) const;
  void check_aliases(const TensorSource& source, const StoredTensor& stored,
                     View<const float> rows) const;
  void check_computed(const TensorSource& source) const;

  const Format& format_;
  const Architecture architecture_;
  kernels::WeightFormat weights_;
  bool rounds_embedding_;
  std::vector<StoredTensor> tensors_;
  std::vector<ComputedTensor> computed_;
  ArenaLayout parameters_;                                             // of the model
  std::unordered_map<std::string_view, const StoredTensor*> by_name_;  // without the prefix
};

}  // namespace heed
