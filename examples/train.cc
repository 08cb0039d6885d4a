// Trains a small model on a text file and measures it:  train FILE DIRECTORY [SETTING=VALUE …]
#include <heed/evaluate.h>
#include <heed/train.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: train FILE DIRECTORY [SETTING=VALUE …]   (as heed train --set)\n";
    return 2;
  }
  try {
    heed::TrainingOptions options{.files = {argv[1]}, .out = argv[2]};
    for (int i = 3; i < argc; ++i) {
      const std::string setting = argv[i];
      const std::size_t equals = setting.find('=');
      options.settings.emplace_back(setting.substr(0, equals),
                                    equals < setting.size() ? setting.substr(equals + 1) : "");
    }
    options.progress = [](const heed::TrainingProgress& now) {
      std::cerr << "\rstep " << now.step << " of " << now.steps << ", loss " << now.loss << "   "
                << std::flush;
    };
    const heed::TrainingResult result = heed::train_model(options);
    std::cerr << "\n";
    const heed::Model model = heed::Model::load(result.checkpoint.string());
    const heed::ModelArchitecture shape = model.architecture();
    const heed::TextEvaluation found = heed::evaluate_file(model, argv[1]);
    std::cout << shape.layers << " layers of " << shape.query_heads << " heads: perplexity "
              << found.perplexity << " over " << found.tokens << " tokens\n";
    return 0;
  } catch (const heed::Error& error) {
    std::cerr << heed::error_code_name(error.code()) << ": " << error.what() << "\n";
    return 1;
  }
}
