#include "microworld/corpus.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/threads.h"

namespace heed::microworld {
namespace {

// Stories generated per batch: enough for all threads, a few MB of text.
constexpr std::int64_t batch_size = 4096;

void append(std::string& text, const Story& story, CorpusFormat format) {
  if (format == CorpusFormat::text) {
    text += story.text;
    text += end_of_text;
  } else {
    text += to_json_line(story);
    text += '\n';
  }
}

}  // namespace

void write_corpus(const Microworld& microworld, const CorpusOptions& options,
                  const TextSink& sink) {
  require(options.begin >= 0 && options.begin <= options.end, ErrorCode::invalid_argument,
          "invalid range of stories [{}, {}): expected 0 <= begin <= end", options.begin,
          options.end);
  std::vector<std::string> texts;
  for (std::int64_t begin = options.begin; begin < options.end; begin += batch_size) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped after {} of {} stories",
            begin - options.begin, options.end - options.begin);
    const std::int64_t end = std::min(options.end, begin + batch_size);
    texts.assign(static_cast<std::size_t>(end - begin), {});
    parallel_ranges(end - begin, 64, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        append(texts[static_cast<std::size_t>(i)], microworld.story(begin + i), options.format);
      }
    });
    for (const std::string& text : texts) sink(text);
    if (options.progress) {
      options.progress({"writing stories", end - options.begin, options.end - options.begin});
    }
  }
}

std::string corpus(const Microworld& microworld, std::int64_t begin, std::int64_t end,
                   CorpusFormat format) {
  std::string text;
  write_corpus(microworld, {.begin = begin, .end = end, .format = format},
               [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace heed::microworld
