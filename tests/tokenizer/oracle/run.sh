#!/usr/bin/env bash
# Compares heed's tokenizers with two npm packages: GPT-2's with tiktoken, on all English test data
# and 100,000 random texts; those of LLaMA, Mistral, Qwen, GPT-NeoX and GPT-4o with Hugging Face's
# tokenizers, on 100,000 random texts each, as well as T5's and BERT's kinds with models that Debian's
# python3-sentencepiece trains. Usage: run.sh TOKENIZER_TESTS BUILD_DIR [ENGINE_TESTS]
#   TOKENIZER_TESTS  the built test program tokenizer_tests
# HEED_ORACLE_SHARE=0.1 compares a tenth of the latter.
# Conversations in the templates of published models, and added tokens with every combination of flags,
# are compared with the same library, the former by ENGINE_TESTS, the test program engine_tests.
#   BUILD_DIR        where the npm packages and the records go (made; never the source tree)
# Exit status: 0 equal; 77 could not be run (no Node.js, no network, no data); else different.
set -euo pipefail

if [ $# -ne 2 ] && [ $# -ne 3 ]; then
  sed -n 's/^# \{0,1\}//; 2,10p' "$0" >&2
  exit 2
fi
tests=$(realpath "$1")
engine_tests=${3:+$(realpath "$3")}
here=$(cd "$(dirname "$0")" && pwd)
data=$(realpath -m "${HEED_TEST_DATA:-$here/../../../../shared/data}")
mkdir -p "$2"
build=$(realpath "$2")

skip() {
  echo "skipped: $1" >&2
  exit 77
}
command -v node >/dev/null && command -v npm >/dev/null || skip "Node.js and npm are needed"
[ -f "$data/gpt2/vocab.json" ] || skip "no test data in $data (set HEED_TEST_DATA)"

# Installs the packages of package-lock.json in the current directory.
install() {
  if ! cmp -s package-lock.json installed-lock.json; then
    npm ci --no-audit --no-fund --loglevel=error || skip "npm ci failed"
    cp package-lock.json installed-lock.json
  fi
}

cp "$here/package.json" "$here/package-lock.json" "$here/oracle.mjs" "$here/random_text.mjs" "$build/"
cd "$build"
install
node oracle.mjs "$data" "$build/records.bin"
HEED_TEST_DATA="$data" HEED_TIKTOKEN_RECORDS="$build/records.bin" \
  "$tests" --gtest_filter='Oracle.*' --gtest_brief=1

mkdir -p published/records
cd published
cp "$here"/published/* "$here/random_text.mjs" "$here/../../support/protobuf.py" .
install
node matrix.mjs added_matrix.json 300
HEED_ADDED_MATRIX="$PWD/added_matrix.json" "$tests" --gtest_filter='AddedMatrix.*' --gtest_brief=1
if [ -n "$engine_tests" ]; then
  rm -rf chats
  node chats.mjs chats
  HEED_PUBLISHED_CHATS="$PWD/chats" "$engine_tests" --gtest_filter='PublishedChats.*' --gtest_brief=1
fi
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c "import sentencepiece" 2>/dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || skip "python3-sentencepiece is needed"
[ -f "$data/multi30k/train.en.gz" ] || skip "no multi30k in $data (set HEED_TEST_DATA)"
# The records take minutes: they are kept until what makes them changes.
{ cat package-lock.json documents.mjs published.mjs random_text.mjs train_models.py protobuf.py
  echo "${HEED_ORACLE_SHARE:-1}"; } >made-from
if ! cmp -s made-from records/made-from; then
  rm -rf records models
  mkdir records models
  "$python" train_models.py "$data" models
  node published.mjs "$data" models records
  cp made-from records/made-from
fi
HEED_PUBLISHED_RECORDS="$build/published/records" \
  "$tests" --gtest_filter='PublishedOracle.*' --gtest_brief=1
