// Attention by words: the answers of attention endpoints with ?unit=words. A word's row is that of
// its last token; the weights of a word's tokens are summed.
#pragma once

#include "server/explorer/state.h"

namespace heed::server {

// (words, words), or the part of it that ?query_begin=, query_end=, key_begin= and key_end= name,
// counted in words. Throws Error{invalid_argument} where the request also pools, or asks for
// scores, which have no sum.
Reply words_region(const Request& request, StoredTrace& trace, std::int64_t layer,
                   std::int64_t head);

// The row of a token, (words), or its ?top= largest weights.
Reply words_row(const Request& request, StoredTrace& trace, std::int64_t layer, std::int64_t head,
                std::int64_t query);

// What each word gives to the whole word with the token at `key`, (words), or the ?top= largest.
Reply words_column(const Request& request, StoredTrace& trace, std::int64_t layer,
                   std::int64_t head, std::int64_t key);

}  // namespace heed::server
