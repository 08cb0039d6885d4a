#include "tokenizer/part_tokenizer.h"

#include "base/error.h"

namespace heed {

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
    append_part(text.substr(begin, end - begin), begin == 0, spans);
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
