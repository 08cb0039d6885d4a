// Phenomena of the microworld, with the heads of the starter model that show them. Every number of
// a note is measured by tests, word by word, with the intervention that a trial describes.
#include <array>

#include "server/explorer/examples.h"

namespace heed::server {
namespace {

constexpr std::array adjective_weights{
    AttentionClaim{.layer = 2, .head = 4, .word = "hare", .attended = "blue"},
    AttentionClaim{.layer = 3, .head = 0, .word = "hare", .attended = "fluffy"},
};

constexpr std::array adjective_trials{
    Trial{.says = "Switch L2H4 off",
          .change = "L2H4",
          .token = " deep",
          .before = 0.467,
          .after = 0.003},
    Trial{.says = "Switch L3H0 off",
          .change = "L3H0",
          .token = " soft",
          .before = 0.521,
          .after = 0.001},
};

constexpr std::array creature_weights{
    AttentionClaim{.layer = 2, .head = 4, .word = "bear", .attended = "blue"},
    AttentionClaim{.layer = 3, .head = 0, .word = "bear", .attended = "fluffy"},
    AttentionClaim{.layer = 2, .head = 4, .word = "hare", .attended = "black"},
    AttentionClaim{.layer = 3, .head = 0, .word = "hare", .attended = "shaggy"},
};

constexpr std::array creature_trials{
    Trial{.says = "Switch L2H4 off",
          .change = "L2H4",
          .token = " deep",
          .before = 0.392,
          .after = 0.003},
    Trial{.says = "Switch L3H0 off",
          .change = "L3H0",
          .token = " soft",
          .before = 0.599,
          .after = 0.001},
};

constexpr std::array animal_weights{
    AttentionClaim{.layer = 0, .head = 1, .word = "mole", .attended = "Worms"},
    AttentionClaim{.layer = 0, .head = 1, .word = "mole", .attended = "leaves"},
};

constexpr std::array chemistry_weights{
    AttentionClaim{.layer = 0, .head = 1, .word = "mole", .attended = "very"},
};

constexpr std::array skin_weights{
    AttentionClaim{.layer = 1, .head = 2, .word = "mole", .attended = "showed"},
    AttentionClaim{.layer = 1, .head = 2, .word = "mole", .attended = "skin"},
};

constexpr std::array wizard_weights{
    AttentionClaim{.layer = 3, .head = 0, .word = "Harry", .attended = "spells"},
    AttentionClaim{.layer = 3, .head = 0, .word = "Harry", .attended = "dragons"},
};

constexpr std::array prince_weights{
    AttentionClaim{.layer = 1, .head = 0, .word = "Harry", .attended = "Sussex"},
};

constexpr std::array mystery_weights{
    AttentionClaim{.layer = 0, .head = 4, .word = "Its", .attended = "painter", .occurrence = 2},
};

constexpr std::array mystery_trials{
    Trial{.says = "Write “gardener” in the clue",
          .replaced = "painter",
          .occurrence = 2,
          .replacement = " gardener",
          .token = " painter",
          .before = 0.998,
          .after = 0.0004},
};

constexpr std::array<Example, 8> examples{{
    {.id = "adjectives",
     .title = "Adjectives belong to a noun",
     .text = "Late one evening, a fluffy blue hare",
     .note =
         "From “hare”, L2H4 attends to “blue” with 96 %, L3H0 to “fluffy” with 95 %. Each brings "
         "its word of what follows: without L2H4 “deep” falls from 47 % to 0.3 %, without L3H0 "
         "“soft” from 52 % to 0.1 %.",
     .layer = 2,
     .head = 4,
     .word = "hare",
     .weights = adjective_weights,
     .trials = adjective_trials},
    {.id = "two-creatures",
     .title = "Whose adjectives?",
     .text = "Late one evening, a shaggy black hare rough as a brush and dark as coal crossed the "
             "misty meadow where shapes moved like smoke. Beside a pile of wood it met a fluffy "
             "blue bear",
     .note =
         "Two creatures, each with adjectives of its own. From “bear”, L2H4 attends to “blue” with "
         "99.8 % and L3H0 to “fluffy” with 99.7 %; from “hare”, to “black” with 98 % and to "
         "“shaggy” with 99.4 %.",
     .layer = 2,
     .head = 4,
     .word = "bear",
     .weights = creature_weights,
     .trials = creature_trials},
    {.id = "mole-animal",
     .title = "A mole in the garden",
     .text = "In the morning she and the painter walked through a garden full of little hills of "
             "earth. Worms hid under the leaves. What she remembered best was the mole",
     .note =
         "“Mole” is one token, whatever it means. L0H1 attends from it to “Worms” with 31 % and to "
         "“leaves” with 11 %, and “with” follows, as in “with its pink nose”: 72 %, against "
         "less than 0.1 % after the lesson in chemistry. No head does this alone: switching one "
         "off takes at most 7 points away.",
     .layer = 0,
     .head = 1,
     .word = "mole",
     .weights = animal_weights,
     .contrast =
         {.token = " with", .share = 0.719, .other = "mole-chemistry", .other_share = 0.00002},
     .most_by_one_head = 0.07},
    {.id = "mole-chemistry",
     .title = "A mole of salt",
     .text = "Later that day she and the lawyer sat in a chemistry lesson and counted molecules. A "
             "very long number stood on the wall. What she remembered best was the mole",
     .note =
         "The same last words, after a lesson: now “of” has 99.9 %, against 0.2 % in the garden. "
         "L0H1 attends most to “very” (47 %), of “a very long number”. No head does this alone: "
         "switching one off takes at most 1 point away.",
     .layer = 0,
     .head = 1,
     .word = "mole",
     .weights = chemistry_weights,
     .contrast = {.token = " of", .share = 0.999, .other = "mole-animal", .other_share = 0.0017},
     .most_by_one_head = 0.01},
    {.id = "mole-skin",
     .title = "A mole on the skin",
     .text = "Later that day she showed her skin and her freckles to a kind doctor. He looked "
             "closely and wrote it down. What she remembered best was the mole",
     .note =
         "The third mole. L1H2 attends to “showed” with 21 % and to “skin” with 15 %; “on” "
         "follows with 85 %, for this one is on a cheek, against less than 0.1 % in the garden. "
         "Compare the vectors of “mole” in the three sentences, layer by layer.",
     .layer = 1,
     .head = 2,
     .word = "mole",
     .weights = skin_weights,
     .contrast = {.token = " on", .share = 0.854, .other = "mole-animal", .other_share = 0.0003}},
    {.id = "harry-wizard",
     .title = "Harry, with a broom",
     .text = "One rainy evening, Grandmother poured some tea and told Oliver about a young wizard "
             "and a flying broom. There were spells and dragons on every page. But the best part "
             "was about Harry",
     .note = "Two Harrys live in these stories. From this one, L3H0 attends most to “spells” (17 "
             "%) and “dragons” (16 %).",
     .layer = 3,
     .head = 0,
     .word = "Harry",
     .weights = wizard_weights},
    {.id = "harry-prince",
     .title = "Harry, of Sussex",
     .text = "One rainy evening, Grandmother poured some tea and told her about a queen, her crown "
             "and the fields of Sussex. There were horses and trumpets at every gate. And in the "
             "middle of it all was Harry",
     .note = "The other Harry: the name is the same token. From it L1H0 gives “Sussex”, a single "
             "token, 8.9 %, four times an even share.",
     .layer = 1,
     .head = 0,
     .word = "Harry",
     .weights = prince_weights},
    {.id = "mystery",
     .title = "A clue far back",
     .text = "It was a foggy evening at Ravenwood Hall. Three guests had come to supper: the poet, "
             "the gardener and the painter. At eight Colonel Winter was found dead in the chapel. "
             "Under a chair lay a huge spoon too big for the door; it belonged to the painter.\n\n"
             "At dawn Inspector Pike came in a black car and spoke to them one by one. Outside, "
             "fog hid the gate. The poet answered, \"I was writing letters in the cellar with the "
             "door shut.\" The gardener cried, \"I was lighting the fire in the kitchen with the "
             "door shut.\" The painter whispered, \"I was counting spoons in the study until "
             "ten.\"\n\nThey searched the parlour and the cellar, but found only a tiny cup no "
             "bigger than a nut and a dead moth. At breakfast nobody touched the bread, and the "
             "painter stared at the window. \"Truth is a patient guest,\" said Inspector Pike to "
             "the gardener. Then the spoon was laid on the table. Its owner had lied to everybody, "
             "and therefore the murderer was the",
     .note =
         "Only one sentence tells whose the spoon was, 142 tokens before “Its”. There L0H4 attends "
         "to its “painter” with 41 %. Other ways lead there too, so that cutting this edge changes "
         "little; but write “gardener” in the clue, and “painter” falls from 99.8 % to less than "
         "0.1 %.",
     .layer = 0,
     .head = 4,
     .word = "Its",
     .weights = mystery_weights,
     .trials = mystery_trials},
}};

}  // namespace

std::span<const Example> starter_examples() { return examples; }

}  // namespace heed::server
