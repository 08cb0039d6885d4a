// Verbs without an object, and all verbs together.
#include <vector>

#include "microworld/bilingual/verb_rows.h"

namespace heed::microworld::bilingual {
namespace tables {
namespace {

constexpr Classes lying = flat | animal, standing = upright | vehicle | living;
constexpr Classes none = 0;

constexpr std::array objectless_rows = {
    en(intransitive, "sleep slept slept sleeping", living | flyer, none,
       de("schlafen geschlafen schläf schlief")),
    en(intransitive, "laugh laughed laughed laughing", person, none, de("lachen gelacht")),
    en(intransitive, "smile smiled smiled smiling", person, none, de("lächeln gelächelt")),
    en(intransitive, "cry cried cried crying", person, none, de("weinen geweint"),
       de("heulen geheult")),
    en(intransitive, "dance danced danced dancing", living, none, de("tanzen getanzt")),
    en(intransitive, "sing sang sung singing", person | bird, none, de("singen gesungen - sang")),
    en(intransitive, "work worked worked working", person, none, de("arbeiten gearbeitet")),
    en(intransitive, "wait waited waited waiting", living, none, de("warten gewartet")),
    en(intransitive, "play played played playing", living, none, de("spielen gespielt")),
    en(intransitive, "rest rested rested resting", living, none,
       sich(de("ruhen ausgeruht - - aus"))),
    en(intransitive, "swim swam swum swimming", living, none,
       sein(de("schwimmen geschwommen - schwamm"))),
    en(intransitive, "hurry hurried hurried hurrying", person, none, sich(de("beeilen beeilt"))),
    en(intransitive, "lie lied lied -", person, none, de("lügen gelogen - log")),
    en(intransitive, "wake woke woken - up", living | flyer, none,
       sein(de("wachen aufgewacht - - auf"))),
    en(intransitive, "fall fell fallen - asleep", living, none,
       sein(de("schlafen eingeschlafen schläf schlief ein"))),
    en(intransitive, "get got got getting up", person, none,
       sein(de("stehen aufgestanden - stand auf"))),
    en(intransitive, "arrive arrived arrived -", person | vehicle, none,
       sein(de("kommen angekommen - kam an")), sein(de("treffen eingetroffen triff traf ein"))),
    en(intransitive, "come came come coming back", living, none,
       sein(de("kommen zurückgekommen - kam zurück")), sein(de("kehren zurückgekehrt - - zurück"))),
    en(intransitive, "stop stopped stopped -", vehicle, none,
       de("halten angehalten hält hielt an")),
    en(intransitive, "shine shone shone shining", candle, none, de("leuchten geleuchtet")),
    en(intransitive, "jump jumped jumped jumping", living, none,
       sein(de("springen gesprungen - sprang")), sein(de("hüpfen gehüpft"))),
    en(intransitive, "eat ate eaten eating", person, none, de("essen gegessen iss aß")),
    en(intransitive, "eat ate eaten eating", animal, none, de("fressen gefressen friss fraß")),

    en(motion, "go went gone going", person, none, sein(de("gehen gegangen - ging"))),
    en(motion, "run ran run running", living, none, sein(de("laufen gelaufen läuf lief")),
       sein(de("rennen gerannt - rannte"))),
    en(motion, "drive drove driven driving", person | vehicle, none,
       sein(de("fahren gefahren fähr fuhr"))),
    en(motion, "fly flew flown flying", flyer, none, sein(de("fliegen geflogen - flog"))),
    en(motion, "climb climbed climbed climbing", living, none, sein(de("klettern geklettert")),
       sein(de("steigen gestiegen - stieg"))),
    en(motion, "crawl crawled crawled crawling", animal, none,
       sein(de("kriechen gekrochen - kroch"))),
    en(motion, "come came come coming", living, none, sein(de("kommen gekommen - kam"))),

    en(position, "lie lay lain lying", lying, none, de("liegen gelegen - lag")),
    en(position, "stand stood stood standing", standing, none, de("stehen gestanden - stand")),
    en(position, "sit sat sat sitting", living, none, de("sitzen gesessen - saß")),
    stative(en(position, "live lived lived -", person, interior, de("wohnen gewohnt"))),
    en(placement, "put put put putting", person, flat, de("legen gelegt")),
    en(placement, "put put put putting", person, upright, de("stellen gestellt")),
    en(placement, "throw threw thrown throwing", person, toy | flat,
       de("werfen geworfen wirf warf"), de("schmeißen geschmissen - schmiss")),

    en(impersonal, "rain rained rained raining", none, none, de("regnen geregnet")),
    en(impersonal, "snow snowed snowed snowing", none, none, de("schneien geschneit")),

    en(clause, "say said said -", person, none, de("sagen gesagt")),
    stative(en(clause, "know knew known -", person, none, de("wissen gewusst - wusste"))),
    stative(en(clause, "believe believed believed -", person, none, de("glauben geglaubt"))),
    stative(en(clause, "think thought thought -", person, none, de("denken gedacht - dachte"),
               de("glauben geglaubt"))),
    en(clause, "hope hoped hoped -", person, none, de("hoffen gehofft")),
    en(clause, "hear heard heard -", person, none, de("hören gehört"),
       de("erfahren erfahren erfähr erfuhr")),
    en(clause, "notice noticed noticed -", person, none, de("bemerken bemerkt"),
       de("merken gemerkt")),
    stative(en(clause, "fear feared feared -", person, none, de("befürchten befürchtet"),
               de("fürchten gefürchtet"))),
    en(question, "ask asked asked -", person, none, de("fragen gefragt")),
    en(question, "wonder wondered wondered -", person, none, sich(de("fragen gefragt"))),
};

}  // namespace

std::span<const Verb> verbs_without_object() { return objectless_rows; }

}  // namespace tables

std::span<const Verb> all_verbs() {
  static const std::vector<Verb> verbs = [] {
    std::vector<Verb> all;
    for (const auto table : {tables::verbs_without_object(), tables::verbs_with_object()}) {
      all.insert(all.end(), table.begin(), table.end());
    }
    return all;
  }();
  return verbs;
}

}  // namespace heed::microworld::bilingual
