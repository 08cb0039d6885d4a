#include "microworld/microworld.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/threads.h"
#include "microworld/kinds.h"

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

Story Microworld::story(std::int64_t index) const {
  require(index >= 0, ErrorCode::invalid_argument, "story index {} is negative", index);
  Sampler sampler(seed_, static_cast<std::uint64_t>(index));
  Writer writer(sampler);
  tell(writer, kinds_);
  writer.story().index = index;
  return std::move(writer.story());
}

std::vector<Story> derivations(std::string_view text, std::size_t limit) {
  std::vector<Story> stories;
  Replayer replayer(text);
  do {
    Writer writer(replayer);
    tell(writer);
    if (replayer.matched()) stories.push_back(std::move(writer.story()));
  } while (stories.size() < limit && replayer.next());
  return stories;
}

std::optional<Story> parse(std::string_view text) {
  std::vector<Story> stories = derivations(text, 1);
  if (stories.empty()) return std::nullopt;
  return std::move(stories.front());
}

double log_probability(std::string_view text) {
  const std::vector<Story> stories = derivations(text);
  if (stories.empty()) return -std::numeric_limits<double>::infinity();
  // The sum over all derivations; the grammar has at most one.
  double total = 0.0;
  for (const Story& story : stories) {
    total += std::exp(story.log_probability - stories[0].log_probability);
  }
  return stories[0].log_probability + std::log(total);
}

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
