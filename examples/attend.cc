// The tokens that the last token of a text attends to, in every head:  attend MODEL TEXT
#include <heed/heed.h>

#include <iomanip>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: attend MODEL TEXT   (MODEL: a directory, or starter)\n";
    return 2;
  }
  try {
    const heed::Model model = heed::Model::load(argv[1]);
    const std::vector<std::int32_t> tokens = model.encode(argv[2]);
    const heed::Model::Attention attention = model.attention(tokens);
    const std::int64_t last = attention.tokens - 1;
    std::cout << std::fixed << std::setprecision(3);
    for (std::int64_t layer = 0; layer < attention.layers; ++layer) {
      for (std::int64_t head = 0; head < attention.heads; ++head) {
        std::int64_t most = 0;
        for (std::int64_t key = 1; key <= last; ++key) {
          if (attention.weight(layer, head, last, key) >
              attention.weight(layer, head, last, most)) {
            most = key;
          }
        }
        std::cout << "L" << layer << "H" << head << " looks at token " << most << " '"
                  << model.decode({&tokens[most], 1}) << "' with weight "
                  << attention.weight(layer, head, last, most) << "\n";
      }
    }
    return 0;
  } catch (const heed::Error& error) {
    std::cerr << heed::error_code_name(error.code()) << ": " << error.what() << "\n";
    return 1;
  }
}
