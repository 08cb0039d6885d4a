#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace heed {
namespace {

TEST(EscapeControls, LeavesTextAlone) {
  const std::string text = "größe 'x' \\n 日本語 \U0001F600 e\u0301";
  EXPECT_EQ(escape_controls(text), text);
  EXPECT_EQ(escape_controls(""), "");
}

TEST(EscapeControls, EscapesWhatMovesOrHides) {
  EXPECT_EQ(escape_controls("a\x1b[2Jb\r\n\tc\x7f"), "a\\x1B[2Jb\\r\\n\\tc\\x7F");
  EXPECT_EQ(escape_controls(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(escape_controls("\u0085\u009b2J"), "\\u{85}\\u{9B}2J");  // C1
  EXPECT_EQ(escape_controls("\x9b"), "\\x9B");                       // a byte alone
  EXPECT_EQ(escape_controls("\u202Ex\u2066\u200F\u061C"), "\\u{202E}x\\u{2066}\\u{200F}\\u{61C}");
  EXPECT_EQ(escape_controls("\xC0\xAF\xED\xA0\x80"), "\\xC0\\xAF\\xED\\xA0\\x80");
}

TEST(EscapeControls, ChangesNothingTheSecondTime) {
  const std::string once = escape_controls("\x1b]0;title\a\u202e\xff\\");
  EXPECT_EQ(escape_controls(once), once);
}

TEST(EscapeControls, KeepsLinesWhereThereAreSeveral) {
  EXPECT_EQ(escape_controls_in_lines("a\tb\n\x1b[1mc\r\n"), "a\tb\n\\x1B[1mc\\r\n");
}

TEST(Printable, TellsBackslashesApart) {
  EXPECT_EQ(printable("\\n\n\\"), "\\\\n\\n\\\\");
  EXPECT_EQ(printable("\u202E\x1b"), "\\u{202E}\\x1B");
  EXPECT_EQ(in_quotes("a\nb"), "'a\\nb'");
}

// Messages quote files and requests, and reach terminals, logs, clients and Python.
TEST(ErrorMessages, AreOneLineWithoutControls) {
  const Error error(ErrorCode::corrupt_data, "model\x1b]0;x\a.json: '\u009b\n\xff' is not …");
  EXPECT_STREQ(error.what(), "model\\x1B]0;x\\x07.json: '\\u{9B}\\n\\xFF' is not …");
}

}  // namespace
}  // namespace heed
