# shellcheck shell=bash
# Fills in the declarative files.

# render FILE: drops the blocks between `#[ X` and `#]` whose switch X is not on and fills in ${NAMES}.
# A name without a value is an error.
render() {
  local text name value
  text=$(awk '
    /^ *#\[ / { keep = (ENVIRON["SWITCH_" $2] == "on"); inside = 1; next }
    /^ *#\]$/ { inside = 0; next }
    !inside || keep
  ' "$1")
  while [[ $text =~ \$\{([A-Z_]+)\} ]]; do
    name=${BASH_REMATCH[1]}
    [ -n "${!name+set}" ] || die "$1: \${$name} has no value"
    value=${!name}
    text=${text//"\${$name}"/"$value"}
  done
  printf '%s\n' "$text"
}

# switches: tells render what is on.
switches() {
  export SWITCH_MONITORING=$MONITORING SWITCH_APIKEYS=off
  [ "$AUTH" != apikeys ] || SWITCH_APIKEYS=on
  METRICS_PORT=off
  ! on "$MONITORING" || METRICS_PORT=9090
}
