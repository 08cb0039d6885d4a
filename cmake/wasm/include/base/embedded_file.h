// Puts the contents of a file into the program's read-only data, between two symbols: as the header
// of this name in src/base, in the assembler of WebAssembly.
#pragma once

// `path` is a string literal; the bytes are [symbol_begin, symbol_end), and a zero follows them.
#define HEED_EMBED(symbol, path)                                                                 \
  asm(".section .rodata." #symbol                                                                \
      ",\"\",@\n"                                                                                \
      ".hidden " #symbol "_begin\n.globl " #symbol "_begin\n.type " #symbol                      \
      "_begin,@object\n" #symbol "_begin:\n.incbin \"" path                                      \
      "\"\n"                                                                                     \
      ".size " #symbol "_begin, . - " #symbol                                                    \
      "_begin\n"                                                                                 \
      ".hidden " #symbol "_end\n.globl " #symbol "_end\n.type " #symbol "_end,@object\n" #symbol \
      "_end:\n.byte 0\n.size " #symbol "_end, 1\n");                                             \
  extern "C" {                                                                                   \
  __attribute__((visibility("hidden"))) extern const char symbol##_begin[];                      \
  __attribute__((visibility("hidden"))) extern const char symbol##_end[];                        \
  }
