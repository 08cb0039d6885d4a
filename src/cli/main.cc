#include "cli/run.h"

int main(int argc, char** argv) { return heed::cli::run(argc, argv); }
