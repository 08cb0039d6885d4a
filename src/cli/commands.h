// The commands of `heed`: one file command_NAME.cc each, which registers itself here.
#pragma once

#include "cli/arguments.h"

namespace heed::cli {

void add_tour_command(Command app);
void add_train_command(Command app);
void add_generate_command(Command app);
void add_translate_command(Command app);
void add_chat_command(Command app);
void add_predict_command(Command app);
void add_attend_command(Command app);
void add_trace_command(Command app);
void add_heads_command(Command app);
void add_lens_command(Command app);
void add_explain_command(Command app);
void add_patch_command(Command app);
void add_induction_command(Command app);
void add_eval_command(Command app);
void add_bleu_command(Command app);
void add_params_command(Command app);
void add_plan_command(Command app);
void add_tokenize_command(Command app);
void add_tokenizer_command(Command app);
void add_microworld_command(Command app);
void add_bench_command(Command app);
void add_pull_command(Command app);
void add_convert_command(Command app);
void add_tensorboard_command(Command app);
void add_serve_command(Command app);
void add_explore_command(Command app);

}  // namespace heed::cli
