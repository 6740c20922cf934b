#!/usr/bin/env bash
# Every C++ snippet of README.md and docs/ is cut from code that is compiled and tested: a fenced block
# follows a line that ends in "(`FILE`):" and stands in FILE as it is, but for indentation. Tests that
# are named there (`Suite.Name`) exist, and so do files that are linked or named.
set -uo pipefail
cd "$(dirname "$0")/../.."

snippets=0
failed=0
while IFS=$'\t' read -r page line file text; do
  snippets=$((snippets + 1))
  if [ ! -f "$file" ]; then
    echo "$page:$line: no file '$file'"
  elif ! [[ $(sed 's/^ *//; s/ *$//' "$file" | tr '\n' '\r') == *"$text"* ]]; then
    echo "$page:$line: not in $file any more"
  else
    continue
  fi
  failed=$((failed + 1))
done < <(awk '
  FNR == 1 { file = "" }
  /^```/ && inside { printf "%s\t%d\t%s\t%s\n", FILENAME, first, file, text; inside = 0; file = ""; next }
  /^```cpp/ { inside = 1; first = FNR; text = ""; next }
  inside { gsub(/^ +| +$/, ""); text = text $0 "\r"; next }
  /\(`[^`]*`\):$/ { file = $0; sub(/`\):$/, "", file); sub(/.*`/, "", file) }
' README.md docs/*.md)

names=0
while read -r page name; do
  names=$((names + 1))
  case $name in
    */*) found=$([ -e "$name" ] || [ -e "include/cusync/$name" ] && echo yes) ;;
    *.md) found=$([ -e "docs/$name" ] || [ -e "$name" ] && echo yes) ;;
    *.*) found=$(grep -rqE "^(TYPED_)?TEST(_P)?\\(${name%.*}, *${name#*.}\\)" tests && echo yes) ;;
    *) found=$(grep -rqE "^(TYPED_)?TEST(_P)?\\($name," tests && echo yes) ;;
  esac
  [ -n "$found" ] && continue
  echo "$page: there is no $name"
  failed=$((failed + 1))
done < <(for page in README.md docs/*.md; do
  grep -oE '`([A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9]*|FieldCase[0-9]+)`|`?(tests|examples|docs|include|tools|kernels|policy|order|dependence|device|sim)/[A-Za-z0-9_./-]+|\([a-z-]+\.md\)' "$page" |
    tr -d '`()' | sed "s|[./]*$||; s|^|$page |"
done | sort -u)

echo "docs: $((snippets + names - failed)) passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$snippets" -gt 0 ]
