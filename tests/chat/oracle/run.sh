#!/usr/bin/env bash
# Compares heed's chat templates with Jinja (the Debian package python3-jinja2): expressions, white
# space and generated templates. Usage: run.sh CHAT_TESTS BUILD_DIR [TEMPLATES]
#   CHAT_TESTS  the built test program chat_tests
#   BUILD_DIR   where the records go (made; never the source tree)
#   TEMPLATES   a directory of published templates, *.jinja, which are compared as well
# Exit status: 0 equal; 77 could not be run (no Jinja); else different.
set -euo pipefail

if [ $# -lt 2 ]; then
  sed -n 's/^# \{0,1\}//; 2,3p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
for python in /usr/bin/python3 python3; do
  "$python" -c 'import jinja2' 2>/dev/null || continue
  PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore "$here/records.py" "$2/records.json" ${3+"$3"}
  HEED_JINJA_RECORDS="$2/records.json" "$1" --gtest_filter='Oracle.*' --gtest_brief=1
  exit
done
echo "skipped: Python has no jinja2 (Debian: python3-jinja2)" >&2
exit 77
