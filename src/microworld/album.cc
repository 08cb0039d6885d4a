// An album: captions and sayings, a line each. The sentences that explanations of attention use are
// among them. Every line stands for itself, so that it can also be read alone.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "microworld/described.h"
#include "microworld/kinds.h"
#include "microworld/scenes.h"
#include "microworld/writer.h"

namespace heed::microworld {
namespace {

constexpr int lines = 8;

// A verb decides what follows its object.
struct Deed {
  std::string_view verb, tail;
};

constexpr std::array<Deed, 5> deeds = {{
    {"crashed", " into (a tree|a wall|the gate)"},
    {"washed", " with (soap|rain water)"},
    {"sold", " for {number} hundred crowns"},
    {"followed", " through the (town|tunnel)"},
    {"stopped", " at the (bridge|corner|lights)"},
}};

constexpr std::array<std::string_view, 4> vehicles = {"car", "bus", "truck", "van"};

// Writes one of the words, all equally likely, and tells where.
Span write_one_of(Writer& writer, std::span<const std::string_view> words, std::string_view& word) {
  const std::size_t begin = writer.offset();
  word = words[writer.pick(words)];
  return {begin, writer.offset()};
}

void write_deed(Writer& writer) {
  std::array<std::string_view, deeds.size()> verbs;
  std::ranges::transform(deeds, verbs.begin(), &Deed::verb);
  EvidenceMark mark{.subject = "deed"};
  std::string_view verb, vehicle;
  Slots slots = common_slots();
  slots.set("verb", [&](Writer& w) { mark.evidence = {write_one_of(w, verbs, verb)}; });
  slots.set("vehicle", [&](Writer& w) { mark.word = write_one_of(w, vehicles, vehicle); });
  slots.set("tail", [&](Writer& w) {
    const std::size_t begin = w.offset();
    say(w, std::ranges::find(deeds, verb, &Deed::verb)->tail, slots);
    mark.answer = {begin, w.offset()};
  });
  say(writer, "(They|We|You) {verb} the {vehicle}{tail}", slots);
  writer.story().evidence.push_back(std::move(mark));
}

// "It" is one of two nouns, and the reason at the end of the sentence decides which.
struct Pronoun {
  std::string_view sentence;  // with {subject}, {object} and {reason}
  std::array<std::string_view, 4> objects;
  std::string_view subject_reason, object_reason;
  std::string_view object_after;  // after "So the OBJECT"
};

constexpr std::array<std::string_view, 5> beings = {"animal", "cat", "dog", "rat", "cow"};

constexpr std::array<Pronoun, 2> pronouns = {{
    {"The {subject} didn't cross the {object} because it was too {reason}.",
     {"street", "road", "river", "bridge"},
     "(tired|old|ill)",
     "(wide|long|busy)",
     "(stayed empty|lay still)"},
    {"The {subject} sat on the {object} because it was {reason}.",
     {"mat", "rug", "sofa", "cushion"},
     "(tired|lazy|full)",
     "(soft|warm|dry)",
     "(was warm|felt soft)"},
}};

void write_pronoun(Writer& writer) {
  EvidenceMark mark{.subject = "pronoun"};
  std::string_view subject, object;
  Span subject_span, object_span;
  bool of_subject = false;
  const Pronoun& pronoun = pronouns[writer.choose(pronouns.size())];
  Slots slots;
  slots.set("subject", [&](Writer& w) { subject_span = write_one_of(w, beings, subject); });
  slots.set("object", [&](Writer& w) { object_span = write_one_of(w, pronoun.objects, object); });
  slots.set("reason", [&](Writer& w) {
    of_subject = w.choose(2) == 0;
    const std::size_t begin = w.offset();
    say(w, of_subject ? pronoun.subject_reason : pronoun.object_reason, slots);
    mark.evidence = {of_subject ? subject_span : object_span, {begin, w.offset()}};
  });
  slots.set("the", [&](Writer& w) { mark.word = w.write("the"); });
  slots.set("it", [&](Writer& w) {
    mark.answer = w.write(" ");
    w.write(of_subject ? subject : object);
    mark.answer.end = w.offset();
  });
  slots.set("happened", [&](Writer& w) {
    say(w, of_subject ? "(lay down|sat still)" : pronoun.object_after, slots);
  });
  say(writer, pronoun.sentence, slots);
  say(writer, " So {the}{it} {happened}", slots);
  writer.story().evidence.push_back(std::move(mark));
}

// Words of a group stand together, which brings their embeddings together.
struct Group {
  std::string_view verbs;
  std::array<std::string_view, 5> words;
  std::string_view apple;  // the sense of "apple" among them; empty where it has no place
};

constexpr std::array<Group, 3> groups = {{
    {"(fed|stroked|chased)", {"a cat", "a dog", "a rat", "a mouse", "a cow"}, ""},
    {"(ate|peeled|picked)", {"an orange", "a banana", "a pear", "a plum", "a cherry"}, "fruit"},
    {"(repaired|charged|unpacked)",
     {"a phone", "a computer", "a laptop", "a camera", "a printer"},
     "company"},
}};

constexpr std::string_view apple = "an apple";

void write_list(Writer& writer) {
  say(writer, "(They|We|You|I) ", {});
  std::vector<std::string_view> beginnings;
  for (const Group& group : groups) beginnings.push_back(certain_beginning(group.verbs));
  const Group& group = groups[writer.choose({.count = groups.size(), .beginnings = beginnings})];
  say(writer, group.verbs, {});
  std::vector<std::string_view> words(group.words.begin(), group.words.end());
  if (!group.apple.empty()) words.push_back(apple);
  WithoutRepeats rest(words);
  for (const std::string_view before : {" ", ", ", " and "}) {
    writer.write(before);
    if (rest.write(writer) != apple) continue;
    const Span word = {writer.offset() - std::string_view("apple").size(), writer.offset()};
    writer.story().senses.push_back({"apple", std::string(group.apple), word, true});
  }
}

void write_creature_line(Writer& writer) {
  const bool tails = writer.choose(2) == 1;
  const Creature creature =
      write_creature(writer, {.article = Article::capital_indefinite, .tails = tails});
  writer.write(" ");
  say(writer, creature.temper->moves, {});
  writer.write(" ");
  write_place(writer, {.tail = tails});
}

// Two creatures, of which the second sentence recalls one.
void write_meeting(Writer& writer) {
  const Creature first =
      write_creature(writer, {.article = Article::capital_indefinite, .tails = false});
  writer.write(" met ");
  const Creature second = write_creature(writer, {.except = {first.noun}, .tails = false});
  writer.write(". ");
  write_manner(writer, writer.choose(2) == 0 ? first : second);
}

constexpr std::string_view news = "(Apple|Nokia|Google) unveiled a new (phone|computer|laptop)";

void write_line(Writer& writer) {
  static constexpr std::array<double, 8> weights = {0.28, 0.10, 0.10, 0.07, 0.16, 0.09, 0.17, 0.03};
  Slots slots = common_slots();
  slots.set("his", "(his|her)");
  switch (writer.choose({.count = weights.size(), .weights = weights})) {
    case 0: write_caption(writer, Reading::sense, slots); break;
    case 1: write_caption(writer, Reading::name, slots); break;
    case 2: write_creature_line(writer); break;
    case 3: write_deed(writer); break;
    case 4: write_pronoun(writer); break;
    case 5: write_list(writer); break;
    case 6: write_meeting(writer); break;
    default: say(writer, news, slots);
  }
  writer.write(".");
}

}  // namespace

void tell_album(Writer& writer) {
  for (int i = 0; i < lines && writer.alive(); ++i) {
    if (i > 0) writer.write("\n");
    write_line(writer);
  }
}

}  // namespace heed::microworld
