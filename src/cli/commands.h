// The commands of `heed`: one file command_NAME.cc each, which registers itself here.
#pragma once

namespace CLI {
class App;
}

namespace heed::cli {

void add_tour_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_attend_command(CLI::App& app);
void add_trace_command(CLI::App& app);
void add_heads_command(CLI::App& app);
void add_lens_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_patch_command(CLI::App& app);
void add_induction_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_params_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_tokenizer_command(CLI::App& app);
void add_microworld_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_convert_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_explore_command(CLI::App& app);

}  // namespace heed::cli
