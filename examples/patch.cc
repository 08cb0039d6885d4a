// Activation patching of the residual stream, layer by layer and token by token.
//   patch MODEL CLEAN CORRUPTED ANSWER WRONG
#include <heed/patch.h>

#include <iomanip>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: patch MODEL CLEAN CORRUPTED ANSWER WRONG   (prompts of the same number of "
                 "tokens, answers of one token each)\n";
    return 2;
  }
  try {
    const heed::Model model = heed::Model::load(argv[1]);
    const heed::PatchRequest request{
        .clean = {.target = model.encode(argv[2])},
        .corrupted = {.target = model.encode(argv[3])},
        .grid = heed::PatchGrid::residual_pre,
        .metric = {.answer = model.encode(argv[4]).front(), .wrong = model.encode(argv[5]).front()},
        .progress = [](std::int64_t done, std::int64_t cells) {
          std::cerr << "\r" << done << " of " << cells << " cells" << std::flush;
          return true;  // false would stop here
        }};
    const heed::PatchResult found = heed::patch_sweep(model, request);
    std::cerr << "\n";
    std::cout << std::fixed << std::setprecision(2) << "logit of '" << argv[4] << "' less that of '"
              << argv[5] << "': clean " << found.clean << ", corrupted " << found.corrupted
              << "; how much of it each cell brings back:\n";
    for (std::int64_t column = 0; column < found.columns; ++column) {
      std::cout << std::setw(14)
                << model.decode({&request.clean.target[static_cast<std::size_t>(column)], 1});
      for (std::int64_t row = 0; row < found.rows; ++row) {
        std::cout << std::setw(7) << found.recovered(row, column);
      }
      std::cout << "\n";
    }
    return 0;
  } catch (const heed::Error& error) {
    std::cerr << heed::error_code_name(error.code()) << ": " << error.what() << "\n";
    return 1;
  }
}
