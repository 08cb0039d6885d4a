// The example of docs/library.md: next-token predictions, attention, a trace and generation.
#include <heed/heed.h>

#include <iostream>

int main() try {
  const heed::Model model = heed::Model::load("starter");  // or a directory such as gpt2
  const std::vector<std::int32_t> tokens = model.encode("Once upon a time, a sleek blue hare");

  for (const heed::Model::Next& next : model.predict(tokens, {}, 3)) {
    std::cout << next.text << " " << next.probability << "\n";
  }

  const heed::Model::Attention attention = model.attention(tokens);
  const std::int64_t hare = attention.tokens - 1;
  std::cout << "in layer 4, head 3, it attends to" << model.decode({&tokens[6], 1})
            << " with weight " << attention.weight(4, 3, hare, 6) << "\n";

  const heed::Trace trace = model.trace(tokens, {.points = {"resid_post5"}, .positions = {-1}});
  std::cout << "its last vector begins " << trace.arrays.front().values.front() << "\n";

  model.generate("Once upon a time", {.max_new_tokens = 40}, [](std::string_view text) {
    std::cout << text << std::flush;
    return true;  // false would stop here
  });
  std::cout << "\n";
} catch (const heed::Error& error) {
  std::cerr << heed::error_code_name(error.code()) << ": " << error.what() << "\n";
  return 1;
}
