// Nouns for places, and all nouns together.
#include <vector>

#include "microworld/bilingual/tables.h"

namespace heed::microworld::bilingual::tables {
namespace {

constexpr Classes building = interior | landmark | room | destination;

constexpr std::array place_noun_rows = {
    Noun{"house", "houses", building, {{{"Haus", n, "Häuser"}}}},
    Noun{"school", "schools", building, {{{"Schule", f, "Schulen"}}}},
    Noun{"church", "churches", building, {{{"Kirche", f, "Kirchen"}}}},
    Noun{"castle", "castles", building, {{{"Schloss", n, "Schlösser"}, {"Burg", f, "Burgen"}}}},
    Noun{"hotel", "hotels", building, {{{"Hotel", n, "Hotels"}}}},
    Noun{"restaurant",
         "restaurants",
         building,
         {{{"Restaurant", n, "Restaurants"}, {"Gasthaus", n, "Gasthäuser"}}}},
    Noun{"museum", "museums", building, {{{"Museum", n, "Museen"}}}},
    Noun{"library",
         "libraries",
         building,
         {{{"Bibliothek", f, "Bibliotheken"}, {"Bücherei", f, "Büchereien"}}}},
    Noun{"hospital",
         "hospitals",
         building,
         {{{"Krankenhaus", n, "Krankenhäuser"}, {"Klinik", f, "Kliniken"}}}},
    Noun{"theatre", "theatres", building, {{{"Theater", n, "Theater"}}}},
    Noun{"shop", "shops", building, {{{"Laden", m, "Läden"}, {"Geschäft", n, "Geschäfte"}}}},
    Noun{"factory", "factories", building, {{{"Fabrik", f, "Fabriken"}}}},
    Noun{"stable", "stables", building, {{{"Stall", m, "Ställe"}}}},
    Noun{"kitchen", "kitchens", interior | room, {{{"Küche", f, "Küchen"}}}},
    Noun{"room", "rooms", interior | room, {{{"Zimmer", n, "Zimmer"}, {"Raum", m, "Räume"}}}},
    Noun{"living room", "living rooms", interior | room, {{{"Wohnzimmer", n, "Wohnzimmer"}}}},
    Noun{"cellar", "cellars", interior | room, {{{"Keller", m, "Keller"}}}},
    Noun{"office", "offices", interior | room, {{{"Büro", n, "Büros"}}}},
    Noun{"cave", "caves", interior, {{{"Höhle", f, "Höhlen"}}}},
    Noun{"tent", "tents", interior | landmark, {{{"Zelt", n, "Zelte"}}}},
    Noun{"garden", "gardens", interior | passage, {{{"Garten", m, "Gärten"}}}},
    Noun{"park", "parks", interior | passage | destination, {{{"Park", m, "Parks"}}}},
    Noun{"forest", "forests", interior | passage | landmark, {{{"Wald", m, "Wälder"}}}},
    Noun{"village", "villages", interior | passage | landmark, {{{"Dorf", n, "Dörfer"}}}},
    Noun{"town", "towns", interior | passage, {{{"Stadt", f, "Städte"}}}},
    Noun{"station", "stations", edge | landmark | destination, {{{"Bahnhof", m, "Bahnhöfe"}}}},
    Noun{"lake", "lakes", edge | waters | destination, {{{"See", m, "Seen"}}}},
    Noun{"river", "rivers", edge | waters | destination, {{{"Fluss", m, "Flüsse"}}}},
    Noun{"bridge",
         "bridges",
         outside | beneath | crossing | destination,
         {{{"Brücke", f, "Brücken"}}}},
    Noun{"street", "streets", crossing, {{{"Straße", f, "Straßen"}}}},
    Noun{"mountain", "mountains", landmark | crossing | high, {{{"Berg", m, "Berge"}}}},
    Noun{"meadow", "meadows", outside | crossing, {{{"Wiese", f, "Wiesen"}}}},
    Noun{"roof", "roofs", outside, {{{"Dach", n, "Dächer"}}}},
    Noun{"wall", "walls", landmark | crossing | high, {{{"Mauer", f, "Mauern"}}}},
    Noun{"tree", "trees", beneath | landmark | tall, {{{"Baum", m, "Bäume"}}}},
    Noun{"tower", "towers", landmark | tall | destination, {{{"Turm", m, "Türme"}}}},
    Noun{"beach", "beaches", shore | destination, {{{"Strand", m, "Strände"}}}},
    Noun{"coast", "coasts", shore, {{{"Küste", f, "Küsten"}}}},
    // Of several senses: on the bank, in the bank; at the spring.
    Noun{"bank", "banks", shore, {{{"Ufer", n, "Ufer"}}}},
    Noun{"bank", "banks", institution, {{{"Bank", f, "Banken"}}}},
    Noun{"spring", "springs", source, {{{"Quelle", f, "Quellen"}}}},
};

}  // namespace

std::span<const Noun> place_nouns() { return place_noun_rows; }

}  // namespace heed::microworld::bilingual::tables

namespace heed::microworld::bilingual {

std::span<const Noun> all_nouns() {
  static const std::vector<Noun> nouns = [] {
    std::vector<Noun> all;
    for (const auto table :
         {tables::living_nouns(), tables::thing_nouns(), tables::place_nouns()}) {
      all.insert(all.end(), table.begin(), table.end());
    }
    return all;
  }();
  return nouns;
}

}  // namespace heed::microworld::bilingual
