// What begins and ends a model's texts, for every family and command: `bos_token_id`,
// `eos_token_id` (a token or a list of them), `pad_token_id`, `decoder_start_token_id`,
// `forced_bos_token_id` and `forced_eos_token_id`.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_fwd.h"
#include "formats/config_fields.h"
#include "model/architecture.h"

namespace heed {

// The fields of a config.json where a generation_config.json is beside it: of the fields above,
// those that it has are its own, and forced tokens are its alone. Errors name the file that a value
// is from.
ConfigFields led_by_generation(const ConfigFields& config, const ConfigFields& generation);

// The tokens that end a text, in the order of the file, each once. Those from `vocabulary_size` on
// are left out: small vocabularies keep their family's default although they have no such token.
// Throws Error{corrupt_data} for what is no token.
std::vector<std::int64_t> read_end_tokens(const ConfigFields& fields, std::int64_t vocabulary_size);
// The first of them; −1: none.
std::int64_t read_end_of_text(const ConfigFields& fields, std::int64_t vocabulary_size);
// The token that begins a text; −1: none in the vocabulary.
std::int64_t read_beginning_of_text(const ConfigFields& fields, std::int64_t vocabulary_size);

// All of them, of models whose stacks are set. A decoder of which no file says where it starts does
// so with the token that begins a text.
void read_special_tokens(const ConfigFields& fields, Architecture& architecture);
void write_special_tokens(const Architecture& architecture, OrderedJson& json);

// `eos_token_id`: null, a token, or a list of several.
OrderedJson written_end_tokens(std::int64_t end_of_text,
                               const std::vector<std::int64_t>& other_ends = {});

}  // namespace heed
