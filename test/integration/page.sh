# Shell helpers for tests that do what a page of docs/ says, word for word.
# shellcheck shell=bash

pages=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../../docs

# block PAGE TEXT: the first block of commands, or of a file, below the line that has TEXT
block() {
    local found
    found=$(awk -v text="$2" '
        !below { below = index($0, text); next }
        /^    / { inside = 1; print substr($0, 5); next }
        /^$/ { if (inside) print; next }
        inside { exit }' "$pages/$1")
    [ "$found" ] || { echo "docs/$1 has no block below '$2'" >&2; return 1; }
    echo "$found"
}

# quoted PAGE TEXT: what stands between backquotes behind TEXT, in that line
quoted() { sed -n "s/.*$2\`\([^\`]*\)\`.*/\1/p" "$pages/$1" | head -n 1; }
