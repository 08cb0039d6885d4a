// Puts the contents of a file into the program's read-only data, between two symbols.
#pragma once

// `path` is a string literal; the bytes are [symbol_begin, symbol_end), and a zero follows them.
#define HEED_EMBED(symbol, path)                                                                  \
  asm(".pushsection .rodata, \"a\", @progbits\n"                                                  \
      ".hidden " #symbol "_begin\n.global " #symbol "_begin\n" #symbol "_begin:\n.incbin \"" path \
      "\"\n"                                                                                      \
      ".hidden " #symbol "_end\n.global " #symbol "_end\n" #symbol                                \
      "_end:\n.byte 0\n.popsection\n");                                                           \
  extern "C" {                                                                                    \
  __attribute__((visibility("hidden"))) extern const char symbol##_begin[];                       \
  __attribute__((visibility("hidden"))) extern const char symbol##_end[];                         \
  }
