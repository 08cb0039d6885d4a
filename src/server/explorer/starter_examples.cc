// Phenomena of the microworld, with the heads of the starter model that show them best. Tests check
// the stated weights.
#include <array>

#include "server/explorer/examples.h"

namespace heed::server {
namespace {

constexpr std::array<Example, 8> examples{{
    {.id = "adjectives",
     .title = "Adjectives belong to a noun",
     .text = "Late one evening, a fluffy blue hare",
     .note = "From “hare”, head 2.4 gives nearly all of its attention to the adjectives, "
             "most to the nearest. What comes next, “soft” or “deep”, is what these two mean here.",
     .layer = 2,
     .head = 4,
     .word = "hare",
     .looks_at = "fluffy blue",
     .least_weight = 0.9},
    {.id = "two-creatures",
     .title = "Whose adjectives?",
     .text = "Late one evening, a shaggy black hare rough as a brush and dark as coal crossed the "
             "misty meadow where shapes moved like smoke. Beside a pile of wood it met a fluffy "
             "blue bear",
     .note = "Two creatures, each with adjectives of its own: “bear” takes “fluffy” and “blue” and "
             "leaves “shaggy” and “black” to the hare. Pick “hare” and see.",
     .layer = 2,
     .head = 4,
     .word = "bear",
     .looks_at = "fluffy blue",
     .least_weight = 0.9},
    {.id = "mole-animal",
     .title = "A mole in the garden",
     .text = "In the morning she and the painter walked through a garden full of little hills of "
             "earth. Worms hid under the leaves. What she remembered best was the mole",
     .note =
         "“Mole” is one token, whatever it means. Head 0.1 looks back at worms and leaves, and the "
         "model expects “with its pink nose”.",
     .layer = 0,
     .head = 1,
     .word = "mole",
     .looks_at = "garden hills earth Worms leaves",
     .least_weight = 0.45},
    {.id = "mole-chemistry",
     .title = "A mole of salt",
     .text = "Later that day she and the lawyer sat in a chemistry lesson and counted molecules. A "
             "very long number stood on the wall. What she remembered best was the mole",
     .note = "The same last words, another lesson: now head 2.5 finds chemistry, counted and "
             "molecules, and “of” is as good as certain: a mole of salt.",
     .layer = 2,
     .head = 5,
     .word = "mole",
     .looks_at = "chemistry lesson molecules number counted",
     .least_weight = 0.35},
    {.id = "mole-skin",
     .title = "A mole on the skin",
     .text = "Later that day she showed her skin and her freckles to a kind doctor. He looked "
             "closely and wrote it down. What she remembered best was the mole",
     .note = "The third mole. Head 1.1 finds skin, freckles and doctor; “on” follows, for this one "
             "is on a cheek. Compare the vectors of “mole” in the three sentences, layer by "
             "layer.",
     .layer = 1,
     .head = 1,
     .word = "mole",
     .looks_at = "skin freckles doctor",
     .least_weight = 0.35},
    {.id = "harry-wizard",
     .title = "Harry, with a broom",
     .text = "One rainy evening, Grandmother poured some tea and told Oliver about a young wizard "
             "and a flying broom. There were spells and dragons on every page. But the best part "
             "was about Harry",
     .note = "Two Harrys live in these stories. Head 3.0 looks for who this one is, and finds a "
             "wizard, spells and dragons.",
     .layer = 3,
     .head = 0,
     .word = "Harry",
     .looks_at = "wizard broom spells dragons flying young page",
     .least_weight = 0.5},
    {.id = "harry-prince",
     .title = "Harry, of Sussex",
     .text = "One rainy evening, Grandmother poured some tea and told her about a queen, her crown "
             "and the fields of Sussex. There were horses and trumpets at every gate. And in the "
             "middle of it all was Harry",
     .note = "The other Harry: head 1.0 gathers Sussex, horses, crown and gate from all over the "
             "text. The name has the same token in both; what surrounds it makes the difference.",
     .layer = 1,
     .head = 0,
     .word = "Harry",
     .looks_at = "queen crown Sussex horses trumpets gate fields",
     .least_weight = 0.4},
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
     .note = "Only one sentence tells whose the spoon was, a hundred and forty tokens before it "
             "matters. At “Its”, head 0.4 reaches back to “belonged to the painter”; the last word "
             "then knows. Cut that edge and see.",
     .layer = 0,
     .head = 4,
     .word = "Its",
     .looks_at = "belonged painter",
     .least_weight = 0.4},
}};

}  // namespace

std::span<const Example> starter_examples() { return examples; }

}  // namespace heed::server
