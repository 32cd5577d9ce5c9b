# shellcheck shell=bash
# What the deploy's scripts share: saying, asking, doing, and doing several things at once.
# Works with the bash 3.2 of macOS: no associative arrays, no mapfile.

MODE=${MODE:-apply}           # apply, diff (ask, but only print what would be done) or dry (print all, ask nothing)
WORK=${WORK:-$(mktemp -d)}    # answers and rendered files of this run
TRIES=${TRIES:-8}             # a new account or permission takes up to a minute to be known everywhere
PAUSE=${PAUSE:-8}             # seconds between tries

say()  { printf '%s\n' "$*"; }
step() { printf '\n# %s\n' "$*"; }
die()  { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
on()   { [ "$1" = on ]; }

need() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || die "$program is missing"
  done
}

# quoted ARG...: as a person would type it, over several lines where it is long, with the paths that it
# has seen from the repository's root.
quoted() {
  local arg line='' out=''
  for arg in "$@"; do
    arg=${arg//"$ROOT/"/}
    case $arg in
      *[!A-Za-z0-9_./:=@,+%-]* | '') arg="'${arg//\'/\'\\\'\'}'" ;;
    esac
    if [ -n "$line" ] && [ $((${#line} + ${#arg})) -gt 120 ]; then
      out="$out$line \\
      " line=
    fi
    line="$line${line:+ }$arg"
  done
  printf '%s' "$out$line"
}

# ask FILE COMMAND...: keeps what the command answers in $WORK/FILE, one resource a line. In a dry run
# nothing is there. What cannot be read ends the deploy: nothing may be concluded from it.
ask() {
  local file=$WORK/$1; shift
  : > "$file"
  [ "$MODE" = dry ] && return
  if ! "$@" > "$file" 2> "$file.err"; then
    cat "$file.err" >&2
    die "could not ask: $(quoted "$@")"
  fi
}

# known FILE VALUE: whether an answer has this line, or a line that begins with this value and a comma.
known() {
  [ -f "$WORK/$1" ] || die "nothing was asked about $1"
  grep -qxF -- "$2" "$WORK/$1" || awk -v v="$2," 'index($0, v) == 1 { f = 1 } END { exit !f }' "$WORK/$1"
}

# run COMMAND...: prints it; unless this is a dry run does it, and again when it fails in a way that time mends.
run() {
  local try=1 out
  printf '  %s\n' "$(quoted "$@")"
  echo >> "$WORK/changes"
  [ "$MODE" = apply ] || return 0
  out=$(mktemp "$WORK/out.XXXXXX")
  until "$@" > "$out" 2>&1; do
    if [ "$try" -ge "$TRIES" ] || ! grep -qE 'does not exist|concurrent policy changes|subject of a conflict|SERVICE_DISABLED|has not been used in project|Permission denied on secret|ABORTED|UNAVAILABLE|try again|HTTPError 503' "$out"; then
      cat "$out" >&2
      printf 'failed: %s\n' "$(quoted "$@")" >&2
      return 1
    fi
    try=$((try + 1))
    sleep "$PAUSE"
  done
}

# lane COMMAND...: does it beside other lanes; its output appears when join has seen its end.
LANES=
lane() {
  local out
  if [ "$MODE" = dry ]; then "$@"; return; fi
  out=$(mktemp "$WORK/lane.XXXXXX")
  (set -e; "$@") > "$out" 2>&1 &
  LANES="$LANES $!:$out"
}

# join: waits for all lanes and fails when one of them has.
join() {
  local entry failed=0
  for entry in $LANES; do
    wait "${entry%%:*}" || failed=1
    cat "${entry#*:}"
  done
  LANES=
  [ "$failed" = 0 ] || die "a step failed; what is done stays done, run this again to go on"
}

# digest: the first 32 hexadecimal digits of the SHA-256 of standard input, which fit into a label.
digest() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c 1-32
}

# rows FILE: a table's lines without comments.
rows() { grep -vE '^[[:space:]]*(#|$)' "$1"; }
