// Continues a prompt, printing the text as it is generated:  generate MODEL PROMPT
#include <heed/heed.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: generate MODEL PROMPT   (MODEL: a directory, or starter)\n";
    return 2;
  }
  try {
    const heed::Model model = heed::Model::load(argv[1]);
    std::cout << argv[2] << std::flush;
    const auto written = model.generate(argv[2], {.max_new_tokens = 80}, [](std::string_view text) {
      std::cout << text << std::flush;
      return true;  // false would stop here
    });
    std::cout << "\n\n"
              << written.tokens.size() << " tokens, then " << written.finish_reason << "\n";
    return 0;
  } catch (const heed::Error& error) {
    std::cerr << heed::error_code_name(error.code()) << ": " << error.what() << "\n";
    return 1;
  }
}
