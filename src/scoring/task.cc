#include "scoring/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "scoring/characters.h"

namespace heed::scoring {
namespace {

constexpr std::size_t max_choices = 100;

// A line of a file, and how messages name it.
struct TaskLine {
  const Json& object;
  std::string place;

  JsonLabel label(std::string_view field) const { return {fmt::format("{}: {}", place, field)}; }

  const Json& field(const char* name) const {
    const Json* const found = find_json_member(object, name);
    require(found != nullptr, ErrorCode::corrupt_data, "{}: there is no field \"{}\"", place, name);
    return *found;
  }
  const std::string& text(const char* name) const { return json_string(field(name), label(name)); }
};

// HellaSwag's texts from WikiHow hold "[title]" and "[header]", which parted sections there: "
// [title]" becomes ". ", everything else in brackets goes, and then two spaces become one.
std::string without_brackets(std::string_view raw) {
  constexpr std::string_view title = " [title]";
  const std::string_view text = trimmed(raw);
  std::string kept;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(title)) {
      kept += ". ";
      i += title.size();
      continue;
    }
    const std::size_t close = text[i] == '[' ? text.find(']', i) : std::string_view::npos;
    if (close == std::string_view::npos) {
      // No bracket closes after this one: none after it has to be looked for.
      if (text[i] == '[') {
        kept.append(text.substr(i));
        break;
      }
      kept.push_back(text[i++]);
    } else {
      i = close + 1;
    }
  }
  std::string single;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    single.push_back(kept[i]);
    if (kept[i] == ' ' && i + 1 < kept.size() && kept[i + 1] == ' ') ++i;
  }
  return single;
}

// As Python's str.capitalize() has it, for ASCII alone: the rest of the word in lower case.
std::string capitalised(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    text[i] = i == 0 && letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A')
              : i > 0                                  ? ascii_lower(letter)
                                                       : letter;
  }
  return text;
}

void add_choice(TaskQuestion& question, std::string_view text, const TaskLine& line) {
  require(!trimmed(text).empty(), ErrorCode::corrupt_data, "{}: choice {} is empty", line.place,
          question.continuations.size());
  require(question.continuations.size() < max_choices, ErrorCode::corrupt_data,
          "{}: there are more than {} choices", line.place, max_choices);
  question.continuations.push_back(fmt::format(" {}", text));
}

TaskQuestion read_hellaswag(const TaskLine& line) {
  std::string context;
  if (find_json_member(line.object, "ctx_a") != nullptr) {
    context = fmt::format("{} {}", line.text("ctx_a"), capitalised(line.text("ctx_b")));
  } else {
    context = line.text("ctx");
  }
  if (find_json_member(line.object, "activity_label") != nullptr) {
    context = fmt::format("{}: {}", line.text("activity_label"), context);
  }
  TaskQuestion question{.context = without_brackets(context)};
  const Json& endings = line.field("endings");
  require(endings.is_array(), ErrorCode::corrupt_data, "{}: endings must be a list, not {}",
          line.place, shown_json(endings));
  for (const Json& ending : endings) {
    add_choice(question, without_brackets(json_string(ending, line.label("an ending"))), line);
  }
  // Published as a number and as a string of one.
  const Json& label = line.field("label");
  const std::int64_t last = std::ssize(question.continuations) - 1;
  if (label.is_string()) {
    const std::string& digits = label.get_ref<const std::string&>();
    std::size_t answer = 0;
    while (answer < question.continuations.size() && std::to_string(answer) != digits) ++answer;
    require(answer < question.continuations.size(), ErrorCode::corrupt_data,
            "{}: label must be 0 to {}, not {}", line.place, last, shown_json(label));
    question.answer = answer;
  } else {
    question.answer = static_cast<std::size_t>(json_integer(label, line.label("label"), 0, last));
  }
  return question;
}

TaskQuestion read_arc(const TaskLine& line) {
  const Json& asked = line.field("question");
  const Json* const stem = find_json_member(asked, "stem");
  TaskQuestion question{
      .context = fmt::format("Question: {}\nAnswer:",
                             json_string(stem != nullptr ? *stem : asked, line.label("question")))};
  std::vector<std::string> labels;
  const auto add = [&](const Json& text, const Json& label) {
    add_choice(question, json_string(text, line.label("the text of a choice")), line);
    labels.push_back(json_string(label, line.label("the label of a choice")));
  };
  const auto member = [&](const Json& object, const char* name) -> const Json& {
    const Json* const found = find_json_member(object, name);
    require(found != nullptr, ErrorCode::corrupt_data, "{}: choices have no field \"{}\"",
            line.place, name);
    return *found;
  };
  const Json& choices = stem != nullptr ? member(asked, "choices") : line.field("choices");
  if (choices.is_array()) {
    for (const Json& choice : choices) add(member(choice, "text"), member(choice, "label"));
  } else {
    const Json& texts = member(choices, "text");
    const Json& names = member(choices, "label");
    require(texts.is_array() && names.is_array() && texts.size() == names.size(),
            ErrorCode::corrupt_data,
            "{}: the texts and labels of choices must be two lists of one length", line.place);
    for (std::size_t i = 0; i < texts.size(); ++i) add(texts[i], names[i]);
  }
  const std::string& key = line.text("answerKey");
  const auto found = std::ranges::find(labels, key);
  require(found != labels.end(), ErrorCode::corrupt_data,
          "{}: answerKey is \"{}\", which is not the label of a choice", line.place, key);
  question.answer = static_cast<std::size_t>(found - labels.begin());
  return question;
}

// The last word with the space before it; its marks belong to it, as in the published test.
TaskQuestion read_lambada(const TaskLine& line) {
  const std::string& text = line.text("text");
  const std::size_t last = text.find_last_of(' ');
  require(last != std::string::npos && last > 0 && last + 1 < text.size(), ErrorCode::corrupt_data,
          "{}: text must be a passage and, after a space, its last word", line.place);
  return {.context = text.substr(0, last), .continuations = {text.substr(last)}};
}

struct TaskLayout {
  const char* name;
  const char* field;  // by which a line is known to be of this layout
  TaskKind kind;
  TaskQuestion (*read)(const TaskLine& line);
};
constexpr TaskLayout layouts[] = {
    {"HellaSwag", "endings", TaskKind::choice, read_hellaswag},
    {"ARC", "answerKey", TaskKind::choice, read_arc},
    {"LAMBADA", "text", TaskKind::last_word, read_lambada},
};

const TaskLayout& layout_of(const TaskLine& line) {
  for (const TaskLayout& layout : layouts) {
    if (find_json_member(line.object, layout.field) != nullptr) return layout;
  }
  fail(ErrorCode::corrupt_data,
       "{}: there is no field \"endings\" (HellaSwag), \"answerKey\" (ARC) or \"text\" (LAMBADA)",
       line.place);
}

}  // namespace

Task read_task(std::string_view text, std::string_view source) {
  Task task;
  const std::vector<std::string_view> lines = text_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty()) continue;
    const std::string place = fmt::format("{}, line {}", source, i + 1);
    const Json object = parse_json(lines[i], place);
    require(object.is_object(), ErrorCode::corrupt_data, "{}: must be an object, not {}", place,
            shown_json(object));
    const TaskLine line{object, place};
    const TaskLayout& layout = layout_of(line);
    require(task.layout.empty() || task.layout == layout.name, ErrorCode::corrupt_data,
            "{}: is of {}'s layout, and the first of {}'s", place, layout.name, task.layout);
    task.layout = layout.name;
    task.kind = layout.kind;
    task.questions.push_back(layout.read(line));
    const TaskQuestion& question = task.questions.back();
    require(task.kind == TaskKind::last_word || question.continuations.size() >= 2,
            ErrorCode::corrupt_data, "{}: has {} choices; expected two or more", place,
            question.continuations.size());
  }
  require(!task.questions.empty(), ErrorCode::invalid_argument, "{} has no questions", source);
  return task;
}

std::size_t likeliest(std::span<const double> log_likelihoods) {
  return static_cast<std::size_t>(std::ranges::max_element(log_likelihoods) -
                                  log_likelihoods.begin());
}

std::size_t likeliest_by_length(std::span<const double> log_likelihoods,
                                const TaskQuestion& question) {
  std::vector<double> by_length;
  for (std::size_t i = 0; i < log_likelihoods.size(); ++i) {
    const std::string_view text = std::string_view(question.continuations[i]).substr(1);
    by_length.push_back(log_likelihoods[i] / static_cast<double>(to_characters(text).size()));
  }
  return likeliest(by_length);
}

MeanOfAnswers mean_of(std::span<const double> values) {
  check(!values.empty(), "a mean of no values");
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() == 1) return {.mean = mean};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.mean = mean, .standard_error = std::sqrt(squares / (count - 1) / count)};
}

}  // namespace heed::scoring
