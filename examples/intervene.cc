// Ablates each head in turn and prints the effect on the next word.  intervene MODEL TEXT
#include <heed/intervention.h>

#include <iomanip>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: intervene MODEL TEXT   (MODEL: a directory, or starter)\n";
    return 2;
  }
  try {
    const heed::Model model = heed::Model::load(argv[1]);
    const std::vector<std::int32_t> tokens = model.encode(argv[2]);
    const heed::Model::Next likeliest = model.predict(tokens, {}, 1).front();
    std::cout << std::fixed << std::setprecision(3) << "after the text comes '" << likeliest.text
              << "', logit " << likeliest.logit << "\n";
    for (std::int64_t layer = 0; layer < model.dimensions().layers; ++layer) {
      for (std::int64_t head = 0; head < model.dimensions().heads; ++head) {
        const std::string name = "L" + std::to_string(layer) + "H" + std::to_string(head);
        const heed::EditedModel edited(model, {{.where = name, .change = heed::SetZero{}}});
        const auto logit = edited.logits(tokens)[static_cast<std::size_t>(likeliest.token)];
        std::cout << "without " << name << "  " << std::showpos << logit - likeliest.logit
                  << std::noshowpos << "\n";
      }
    }
    return 0;
  } catch (const heed::Error& error) {
    std::cerr << heed::error_code_name(error.code()) << ": " << error.what() << "\n";
    return 1;
  }
}
