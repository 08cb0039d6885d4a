// The options by which commands change the passes that they run, over one text or over a source and
// its target.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "engine/loaded_model.h"
#include "heed/intervention.h"
#include "microscope/intervene/intervention.h"

namespace heed::cli {

struct InterventionOptions {
  // Points (see microscope/intervene/intervention_text.h), some followed by a value or edges.
  std::vector<std::string> ablate;
  std::vector<std::string> mean;
  std::vector<std::string> scale;
  std::vector<std::string> add;
  std::vector<std::string> steer;
  std::vector<std::string> replace;
  std::vector<std::string> freeze;
  std::vector<std::string> cut;
  std::vector<std::string> cut_words;
  std::vector<std::string> mask;
  // Texts whose activations are used; empty: the text itself. Of a translator, a source, or a
  // source and a target around "|||".
  std::string mean_text;
  std::string steer_to;
  std::string steer_from;
  std::string replace_text;
  std::string freeze_text;
  bool renormalise = false;

  bool any() const;
  bool name_two_texts() const;  // a point of encoder, decoder or cross
  // "ablate L2H3, cut L1H0:7>3", for captions and JSON documents; empty for none.
  std::string summary() const;

 private:
  std::array<const std::vector<std::string>*, 10> all() const;
};

// In --help: the heading of the options, and what POINT means.
extern const char* const intervention_group;
extern const char* const intervention_footer;

void add_intervention_options(Command command, InterventionOptions& options);

// The positions that a run has and may change.
struct EditedPositions {
  std::int64_t first = 0;
  std::int64_t end = 0;  // 0: the length of the text
};

// The options as the library's edits; none where they ask for no intervention. Throws
// Error{invalid_argument} for incomplete options and for positions that the run does not have.
// Where there is no target yet, as in translation, every position of the contexts may be changed,
// and other texts must be given.
std::vector<Edit> make_edits(const InterventionOptions& options, const LoadedModel& model,
                             const Texts& texts, const EditedPositions& edited = {});

// The same, resolved; null for none. Throws what EditedModel throws, too.
std::unique_ptr<Interventions> make_interventions(const InterventionOptions& options,
                                                  const LoadedModel& model, const Texts& texts,
                                                  const EditedPositions& edited = {});

}  // namespace heed::cli
