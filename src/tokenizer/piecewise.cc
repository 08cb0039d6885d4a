#include "tokenizer/piecewise.h"

#include <optional>

#include "base/error.h"
#include "base/threads.h"

namespace heed {
namespace {

// Texts are split into pieces of about this many bytes: large enough to amortise the start of a
// piece, small enough to balance the threads.
constexpr std::size_t encoded_piece_bytes = 128 * 1024;

// A part of the text at whose boundaries no word or added token is split, and its added tokens.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t first_match = 0;
  std::size_t last_match = 0;  // past the end
};

std::vector<Piece> cut_into_pieces(const PreparedText& prepared, const PieceEncoder& encoder) {
  const std::string_view text = prepared.text();
  const std::vector<AddedTokenMatch>& matches = prepared.matches();
  std::vector<Piece> pieces;
  std::size_t match = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t first_match = match;
    std::size_t end = std::min(begin + encoded_piece_bytes, text.size());
    for (; end < text.size(); ++end) {
      while (match < matches.size() && matches[match].end <= end) ++match;
      if (match < matches.size() && matches[match].begin < end) {
        end = matches[match++].end;
        break;
      }
      if (encoder.is_boundary(text, end)) break;
    }
    while (match < matches.size() && matches[match].end <= end) ++match;
    pieces.push_back({begin, end, first_match, match});
    begin = end;
  }
  return pieces;
}

// Capacity for the tokens of `bytes` bytes; most texts need less.
std::size_t likely_tokens(std::size_t bytes) { return bytes / 3 + 8; }

// Collects the tokens of pieces that finish in any order. A piece is appended as soon as all pieces
// before it are, so that few are pending and their memory is reused.
class OrderedTokens {
 public:
  OrderedTokens(std::size_t pieces, std::size_t bytes) : waiting_(pieces) {
    if (pieces > 1) tokens_.reserve(likely_tokens(bytes));
  }

  void add(std::size_t piece, std::vector<std::int32_t> tokens) {
    const std::scoped_lock lock(mutex_);
    waiting_[piece] = std::move(tokens);
    for (; next_ < waiting_.size() && waiting_[next_]; ++next_) {
      if (waiting_.size() == 1) {
        tokens_ = *std::move(waiting_[0]);
      } else {
        tokens_.insert(tokens_.end(), waiting_[next_]->begin(), waiting_[next_]->end());
      }
      waiting_[next_].emplace();
    }
  }

  std::vector<std::int32_t> take() { return std::move(tokens_); }

 private:
  std::mutex mutex_;
  std::vector<std::optional<std::vector<std::int32_t>>> waiting_;
  std::size_t next_ = 0;  // the first piece that is not in tokens_
  std::vector<std::int32_t> tokens_;
};

}  // namespace

std::vector<std::int32_t> encode_in_pieces(const PreparedText& prepared,
                                           const PieceEncoder& encoder, WordCachePool& caches,
                                           StopFlag stop) {
  const std::string_view text = prepared.text();
  const std::vector<AddedTokenMatch>& matches = prepared.matches();
  const std::vector<Piece> pieces = cut_into_pieces(prepared, encoder);
  OrderedTokens joined(pieces.size(), text.size());
  parallel_items(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
    require(!stop_requested(stop), ErrorCode::interrupted, "stopped while tokenizing");
    WordCachePool::Lease cache(caches);
    const auto index = static_cast<std::size_t>(i);
    const Piece& piece = pieces[index];
    std::vector<std::int32_t> tokens;
    tokens.reserve(likely_tokens(piece.end - piece.begin));
    std::size_t begin = piece.begin;
    for (std::size_t match = piece.first_match; match < piece.last_match; ++match) {
      encoder.append_tokens(text.substr(begin, matches[match].begin - begin), *cache, tokens);
      tokens.push_back(matches[match].id);
      begin = matches[match].end;
    }
    encoder.append_tokens(text.substr(begin, piece.end - begin), *cache, tokens);
    joined.add(index, std::move(tokens));
  });
  return joined.take();
}

bool PartTokenizer::may_cut(std::string_view text, std::size_t position) const {
  return position == 0 || position >= text.size();
}

std::vector<TokenSpan> PartTokenizer::prepared_spans(const PreparedText& prepared,
                                                     StopFlag stop) const {
  const std::string_view text = prepared.text();
  std::vector<TokenSpan> spans;
  std::size_t begin = 0;
  const auto append = [&](std::size_t end) {
    require(!stop_requested(stop), ErrorCode::interrupted, "stopped while tokenizing");
    const std::size_t first = spans.size();
    append_part(text.substr(begin, end - begin), prepared.place_of(begin), spans);
    for (std::size_t i = first; i < spans.size(); ++i) {
      spans[i].begin += begin;
      spans[i].end += begin;
    }
  };
  for (const AddedTokenMatch& match : prepared.matches()) {
    append(match.begin);
    spans.push_back({match.id, match.begin, match.end});
    begin = match.end;
  }
  append(text.size());
  return spans;
}

std::vector<std::int32_t> PartTokenizer::encode_prepared(const PreparedText& prepared,
                                                         StopFlag stop) const {
  std::vector<std::int32_t> ids;
  for (const TokenSpan& span : prepared_spans(prepared, stop)) ids.push_back(span.id);
  return ids;
}

}  // namespace heed
